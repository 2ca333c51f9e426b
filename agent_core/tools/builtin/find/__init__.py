"""The tool `find` and the collection of its matches."""
