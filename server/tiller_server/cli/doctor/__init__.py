"""Checks of `tiller doctor`."""
