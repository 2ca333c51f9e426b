"""Logs in files."""

from logbook.plain import PlainLog

__all__ = ["PlainLog"]
