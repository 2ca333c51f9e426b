"""Change history of a session: the change log, the hunks of each file and their review state."""
