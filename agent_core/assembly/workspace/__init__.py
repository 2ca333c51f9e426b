"""Workspace folders of a session and the sandbox of its commands."""
