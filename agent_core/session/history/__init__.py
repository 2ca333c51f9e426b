"""History of a session: the transcript recorder, entries, branches, forks and compaction."""
