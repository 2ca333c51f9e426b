"""Git as Tiller itself starts it: found outside of all workspaces, and without a word of the repository's configuration."""
