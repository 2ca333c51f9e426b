"""Paths, text and file access of a workspace."""
