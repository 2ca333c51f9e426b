"""The per-user process that serves every editor, and what editors spawn to reach it."""
