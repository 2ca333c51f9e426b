"""Chat platforms: the port of their adapters, and what all of them share."""
