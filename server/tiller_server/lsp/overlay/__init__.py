"""Workspace files and processes of a session with the open documents of its editors laid over the disk."""
