"""Files of a workspace on the local disk."""
