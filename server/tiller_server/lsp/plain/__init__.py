"""Features for editors that know plain LSP and none of our methods; loaded on first use."""
