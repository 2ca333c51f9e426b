"""Ports of the change record: the blob store, byte-exact file writes and the change detector."""
