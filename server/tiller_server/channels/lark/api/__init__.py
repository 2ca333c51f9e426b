"""Calls of the REST API: the app, its token, errors, time limits."""
