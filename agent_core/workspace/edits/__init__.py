"""Edits as values: what differs between texts, and how two changes of one text come together; pure."""
