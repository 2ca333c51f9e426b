"""Opening of folders without following links."""
