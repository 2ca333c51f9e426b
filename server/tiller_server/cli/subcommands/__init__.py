"""Commands of `tiller`: one module per command, imported by name."""
