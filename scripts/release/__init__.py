"""Checks what a release consists of, and writes what is published beside it."""
