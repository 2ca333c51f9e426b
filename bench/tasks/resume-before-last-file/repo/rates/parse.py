"""Reads rates."""


def parse(text):
    """Return a rate; a percentage such as `5 %` is divided by 100."""
    text = text.strip()
    if text.endswith("%"):
        return float(text[:-1]) / 100
    return float(text)
