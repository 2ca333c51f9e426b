"""The tool `edit` and its text matching, line endings and diff."""
