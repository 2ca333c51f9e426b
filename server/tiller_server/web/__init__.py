"""The web front end: serves the sessions of the daemon to a browser on the same machine."""
