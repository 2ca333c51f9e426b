"""Markdown in the sizes that cards accept: pieces of elements, pages of cards; pure.

Both are cut from the beginning, and a cut depends only on the text before it. So the pieces of a text that grows stay as
they are, except for the last one.
"""

import re
from collections.abc import Iterator
from typing import Final

from agent_core.kernel.values import Value

PIECE_CHARS: Final = 7_300
"""Longest text of an element: beyond 10,000 characters the platform cuts it without an error."""
INFO_CHARS: Final = 60
"""Longest information of a fence, such as the name of a language, that is repeated when its block is cut."""
PAGE_BYTES: Final = 22 * 1024
"""Largest text of a card, as JSON inside of JSON; the whole card may have 30 KB."""
_FENCE: Final = re.compile(r"^ {0,3}(`{3,60}|~{3,60})([^\n]*)$")
_MENTION: Final = re.compile(r"<(?=/?(?:at|person)\b)", re.IGNORECASE)
_IMAGE: Final = re.compile(r"!(?=\[[^\]\n]*\]\((?!img_))")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_INERT: Final = "\u200b"


class Piece(Value, frozen=True, kw_only=True):
    """A part of a text. A block of code that is cut is closed in its part and opened again in the next one."""

    source: str
    opening: str = ""
    """Line that opens the block again."""
    closing: str = ""
    """Line that closes the block."""

    @property
    def content(self) -> str:
        """Return the part as it is shown."""
        return f"{self.opening}{self.source}{self.closing}"


def inert(text: str) -> str:
    """Return a text without effect: no mention of people, no image, which the platform would refuse.

    An invisible character separates the first character of such a mark from the rest.
    """
    return _IMAGE.sub(f"!{_INERT}", _MENTION.sub(f"<{_INERT}", text))


def json_bytes(text: str) -> int:
    """Return the size of a text in a JSON string that stands in another JSON string, in bytes of UTF-8."""
    # A quote is four characters there, a line break three, another control character seven.
    escaped = 3 * (text.count('"') + text.count("\\")) + 2 * (text.count("\n") + text.count("\t"))
    return len(text.encode("utf-8", "replace")) + escaped + 6 * len(_CONTROL.findall(text))


def pages(text: str) -> tuple[tuple[Piece, ...], ...]:
    """Return the pieces of a text by card; at least one card, with at least one piece."""
    cards: list[list[Piece]] = [[]]
    size = 0
    for piece in split(text, limit=PIECE_CHARS, limit_bytes=PAGE_BYTES):
        needed = json_bytes(piece.content)
        if cards[-1] and size + needed > PAGE_BYTES:
            cards.append([])
            size = 0
        cards[-1].append(piece)
        size += needed
    return tuple(map(tuple, cards))


def split(text: str, *, limit: int, limit_bytes: int) -> Iterator[Piece]:
    """Yield the pieces of a text; their sources joined are the text. An empty text has one empty piece.

    Args:
        text: Markdown.
        limit: Most characters of a source.
        limit_bytes: Most bytes of a source, as `json_bytes` counts them.
    """
    place, fence = 0, ""
    while True:
        window = _window(text, place, limit=limit, limit_bytes=limit_bytes)
        if place + len(window) >= len(text):
            yield Piece(source=text[place:], opening=_opening(fence))
            return
        source = window[: _cut(window, fence)]
        after = _open_fence(source, fence)
        ends_line = source.endswith("\n")
        closing = "" if not after else ("" if ends_line else "\n") + _mark(after)
        yield Piece(source=source, opening=_opening(fence), closing=closing)
        place, fence = place + len(source), after


def _window(text: str, place: int, *, limit: int, limit_bytes: int) -> str:
    """Return the longest part of a text from a place on within the limits, at least one character."""
    window = text[place : place + limit]
    if json_bytes(window) <= limit_bytes:
        return window
    fits, excess = 1, len(window)
    while excess - fits > 1:
        middle = (fits + excess) // 2
        fits, excess = (
            (middle, excess) if json_bytes(window[:middle]) <= limit_bytes else (fits, middle)
        )
    return window[:fits]


def _cut(window: str, fence: str) -> int:
    """Return where a window ends best: at an empty line, else at a line, else at a space; outside of code if possible."""
    least = len(window) // 2
    end = len(window)
    while (place := window.rfind("\n\n", least, end)) != -1:
        if not _open_fence(window[: place + 2], fence):
            return place + 2
        end = place
    for mark in ("\n", " "):
        if (place := window.rfind(mark, least)) != -1:
            return place + 1
    return len(window)


def _open_fence(text: str, fence: str) -> str:
    """Return the line that opened the block of code in which a text ends; empty outside of one."""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        if not fence:
            # A line like ```a``` is code inside of a line.
            fence = "" if match[1][0] == "`" and "`" in match[2] else line
        elif match[1].startswith(_mark(fence)) and not match[2].strip():
            fence = ""
    return fence


def _mark(fence: str) -> str:
    match = _FENCE.match(fence)
    return match[1] if match else ""


def _opening(fence: str) -> str:
    """Return the line that opens a block again; a fence with a long line behind it is opened without that line."""
    if not fence:
        return ""
    mark = _mark(fence)
    return f"{fence if len(fence) <= len(mark) + INFO_CHARS else mark}\n"
