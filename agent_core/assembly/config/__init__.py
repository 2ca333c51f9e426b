"""Configuration of a session: settings, trust, permission rules and their problems."""
