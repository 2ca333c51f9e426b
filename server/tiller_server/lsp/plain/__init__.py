"""What editors get that know plain LSP and nothing of ours; loaded when it is first used."""
