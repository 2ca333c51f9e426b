"""Search index of the session files in SQLite."""
