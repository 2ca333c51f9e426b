"""Reports are UTF-8, and names of files need not be: what cannot be said is shown as U+FFFD. Pure."""


def encodable(text: str) -> str:
    """Return a text that can be written as UTF-8; a byte of a name that is none becomes U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
