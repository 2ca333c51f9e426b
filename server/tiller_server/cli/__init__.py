"""The `tiller` command."""
