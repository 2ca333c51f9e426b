"""Loaded sessions and the clients that are attached to them."""
