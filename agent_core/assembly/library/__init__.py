"""Stored sessions: list, search, read, export, import and delete."""
