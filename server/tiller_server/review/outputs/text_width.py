"""Breaks and cuts lines as a terminal counts them: wide characters take two cells, combining ones none. Pure."""

from collections.abc import Iterator

from agent_core.kernel.text import cell_count


def cut(text: str, most: int) -> str:
    """Cut a line to a width, and show that it was."""
    return text if cell_count(text) <= most else f"{_head(text, most - 1)}…"


def broken(text: str, room: int) -> Iterator[str]:
    """Break a line between words; inside of one only when it alone is too long."""
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if cell_count(joined) <= room:
            line = joined
            continue
        if line:
            yield line
        line = word
        while cell_count(line) > room:
            head = _head(line, room) or line[0]
            yield head
            line = line[len(head) :]
    if line:
        yield line


def _head(text: str, most: int) -> str:
    used = 0
    for place, sign in enumerate(text):
        used += cell_count(sign)
        if used > most:
            return text[:place]
    return text
