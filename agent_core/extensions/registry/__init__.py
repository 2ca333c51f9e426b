"""Registrations of extensions and their merge across a session."""
