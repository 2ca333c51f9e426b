"""Conversion between transcript messages and model requests and answers."""
