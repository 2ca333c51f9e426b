"""Process that an editor starts: relays LSP messages to the daemon and reconnects when it dies."""
