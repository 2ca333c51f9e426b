"""Plans for restoring files to a checkpoint and for reverting changes."""
