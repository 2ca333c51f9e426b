"""Conversion between values of the core and the wire format, errors included."""
