"""Workspace trust: evidence, decisions and their store."""
