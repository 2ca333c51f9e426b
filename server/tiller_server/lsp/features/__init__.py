"""What each method does: one file each, strangers to one another."""
