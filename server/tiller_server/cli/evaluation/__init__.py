"""The command `tiller eval` without its options."""
