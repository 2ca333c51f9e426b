"""Stores that a user's settings choose, for those who have no session."""
