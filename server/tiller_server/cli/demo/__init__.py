"""Demonstration editor and view of `tiller demo`."""
