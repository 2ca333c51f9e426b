"""One session of a client: opened, followed, prompted, configured; its dialogs."""
