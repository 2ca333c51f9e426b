"""Models of a session: adapters, available models and the initial choice."""
