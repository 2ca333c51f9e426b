"""Breaks and cuts lines as a terminal counts them: wide characters take two cells, combining ones none. Pure."""

import unicodedata
from collections.abc import Iterator


def cells(text: str) -> int:
    """Return how wide a text is."""
    return len(text) if text.isascii() else sum(map(_width, text))


def cut(text: str, most: int) -> str:
    """Cut a line to a width, and show that it was."""
    return text if cells(text) <= most else f"{_head(text, most - 1)}…"


def broken(text: str, room: int) -> Iterator[str]:
    """Break a line between words; inside of one only when it alone is too long."""
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if cells(joined) <= room:
            line = joined
            continue
        if line:
            yield line
        line = word
        while cells(line) > room:
            head = _head(line, room) or line[0]
            yield head
            line = line[len(head) :]
    if line:
        yield line


def _head(text: str, most: int) -> str:
    used = 0
    for place, sign in enumerate(text):
        used += _width(sign)
        if used > most:
            return text[:place]
    return text


def _width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
