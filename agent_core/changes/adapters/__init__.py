"""Where the contents of changed files are kept."""
