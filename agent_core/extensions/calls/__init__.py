"""Calls of extensions to models, programs and the event loop."""
