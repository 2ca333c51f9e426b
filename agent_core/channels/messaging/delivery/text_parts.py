"""Parts of texts that are longer than a platform accepts. Pure."""

import re
from collections.abc import Sequence
from typing import Final

FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
FENCE_BYTES: Final = 200
"""Room for a fence that is closed at the end of a part and opened at the begin of the next."""
CUT: Final = "…"


def text_parts(text: str, *, limit_bytes: int) -> Sequence[str]:
    """Return a text in parts of at most so many bytes.

    A part ends at the end of a line where it can. A fenced block is closed at the end of a part and opened again in the
    next; apart from these lines, the parts joined are the text.

    Args:
        text: Markdown.
        limit_bytes: The longest part, in bytes of UTF-8; at least 1,000.
    """
    if len(text.encode()) <= limit_bytes:
        return (text,)
    parts: list[str] = []
    opened: str | None = None
    part, size = "", 0
    begins_line = True
    for piece in _pieces(text, limit_bytes - FENCE_BYTES):
        length = len(piece.encode())
        if part and size + length > limit_bytes - FENCE_BYTES:
            parts.append(_closed(part, opened))
            part = "" if opened is None else f"{opened}\n"
            size = len(part.encode())
        part += piece
        size += length
        opened = _fence_after(piece, opened) if begins_line else opened
        begins_line = piece.endswith("\n")
    return (*parts, part)


def shortened(text: str, *, limit: int) -> str:
    """Return a text of at most so many characters, with a mark where its end is left out."""
    return text if len(text) <= limit else text[: limit - 1] + CUT


def _pieces(text: str, limit_bytes: int) -> Sequence[str]:
    """Return the lines of a text with their ends, cut where they are longer than the limit."""
    pieces: list[str] = []
    *lines, last = text.split("\n")
    for rest in (*(f"{line}\n" for line in lines), last):
        while len(rest.encode()) > limit_bytes:
            head = rest.encode()[:limit_bytes].decode(errors="ignore")
            pieces.append(head)
            rest = rest[len(head) :]  # noqa: PLW2901 - the rest of the same line
        if rest:
            pieces.append(rest)
    return pieces


def _fence_after(line: str, opened: str | None) -> str | None:
    """Return the line that opened the fenced block in which the next line stands; None: it stands in none."""
    match = FENCE.match(line)
    if match is None:
        return opened
    mark, info = match[1], match[2].strip()
    if opened is None:
        is_fence = mark[0] == "~" or "`" not in info
        return f"{mark} {info}".rstrip()[: FENCE_BYTES // 3] if is_fence else None
    is_end = not info and mark[0] == opened[0] and len(mark) >= len(_mark(opened))
    return None if is_end else opened


def _mark(opened: str) -> str:
    return opened[: len(opened) - len(opened.lstrip(opened[0]))]


def _closed(part: str, opened: str | None) -> str:
    if opened is None:
        return part
    return f"{part}{'' if part.endswith(chr(10)) else chr(10)}{_mark(opened)}"
