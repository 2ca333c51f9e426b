"""Names and sizes of downloads."""


def human(size):
    """Return a size for people."""
    return f"{size} bytes"
