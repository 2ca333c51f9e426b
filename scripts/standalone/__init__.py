"""Builds Tiller as a folder that runs without an installed Python."""
