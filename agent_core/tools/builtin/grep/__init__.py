"""The tool `grep`, with ripgrep or with a search in Python."""
