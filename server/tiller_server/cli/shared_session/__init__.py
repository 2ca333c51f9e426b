"""A chat in a session that the daemon has loaded, beside an editor that shows it too."""
