"""External agents of a session: how the settings name them, and how they work on a task."""
