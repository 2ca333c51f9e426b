"""One client as it describes itself: its options, its environment, and the session that it means."""
