"""Encoding of reports as UTF-8: bytes of file names that are not UTF-8 become U+FFFD. Pure."""


def encodable(text: str) -> str:
    """Return a text that can be written as UTF-8; a byte of a name that is none becomes U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
