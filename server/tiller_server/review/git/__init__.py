"""Change under review as read with git: revisions, diff, attributes and file selection."""
