"""The chat file: its text format, rendering of session events, and writing through editors or the disk."""
