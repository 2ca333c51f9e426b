"""Redaction of secrets: held values, secret patterns, and texts that arrive in pieces."""
