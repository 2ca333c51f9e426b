"""The bridge between a chat platform and the sessions of the daemon, the same for all platforms."""
