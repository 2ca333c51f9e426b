"""Checkpoints of a session: their store, and the restore of files and conversation."""
