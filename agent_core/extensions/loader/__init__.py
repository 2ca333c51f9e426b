"""Discovery and import of extensions."""
