"""Comments in which a user asks the agent for something, such as `// tiller: make this faster`; pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.values import Value

MOST_LINES: Final = 40
"""A comment that goes on for longer is cut there."""
MOST_LINE_CHARS: Final = 2_000
"""Longest part of a line that is read, in characters; longer lines are not written by hand."""
_MARK: Final = re.compile(
    r"""(?:^|(?<=[^:\w"'`/]))          # not the `//` of an address, nor the beginning of a text
        (?P<open>//[/!]?|\#+|--+|;+|/\*+!?|\*|<!--+|<%--|\{-|\(\*|%+|"{1,3}|'{1,3}|!|REM\b|dnl\b|\.\.)
        \s*@?(?:tiller|agent)\s*:\s*(?P<words>.*)$""",
    re.VERBOSE | re.IGNORECASE,
)
_ONLY_AT_THE_START: Final = frozenset({"*", '"', "'", '"""', "'''", "!", ".."})
"""Openers that mean something else in the middle of a line."""
_CLOSERS: Final[Mapping[str, str]] = {
    "/*": "*/",
    "*": "*/",
    "<!": "-->",
    "<%": "--%>",
    "{-": "-}",
    "(*": "*)",
    '"""': '"""',
    "'''": "'''",
}


class CommentRequest(Value, frozen=True, kw_only=True):
    """Request of a comment, and its place."""

    text: str
    first_line0: int
    last_line0: int

    def reaches(self, first_line0: int, last_line0: int) -> bool:
        """Return whether it stands on some of these lines."""
        return self.first_line0 <= last_line0 and self.last_line0 >= first_line0

    def moved(self, lines: int) -> "CommentRequest":
        """Return it as it stands so many lines further down."""
        first, last = self.first_line0 + lines, self.last_line0 + lines
        return replace(self, first_line0=first, last_line0=last)


def requests_in(
    rows: Sequence[str], *, first_line0: int, last_line0: int
) -> tuple[CommentRequest, ...]:
    """Return the requests that stand on some of these lines, also those that begin a little above.

    Args:
        rows: The lines of the text, or those around; without their line ends.
        first_line0: The first line of interest.
        last_line0: The last one.
    """
    start = max(0, first_line0 - MOST_LINES)
    found = _requests(rows, start, min(last_line0 + 1, len(rows)))
    return tuple(one for one in found if one.reaches(first_line0, last_line0))


def _requests(rows: Sequence[str], start: int, stop: int) -> Iterator[CommentRequest]:
    line0 = start
    while line0 < stop:
        request = _at(rows, line0)
        if request is not None:
            yield request
            line0 = request.last_line0
        line0 += 1


def _at(rows: Sequence[str], line0: int) -> CommentRequest | None:
    row = rows[line0][:MOST_LINE_CHARS]
    found = _MARK.search(row)
    if found is None:
        return None
    opener = found["open"]
    if opener in _ONLY_AT_THE_START and row[: found.start("open")].strip():
        return None
    closer = _closer(opener)
    parts = [_without(found["words"], closer)]
    last = line0
    is_closed = closer is not None and closer in found["words"]
    while not is_closed and last - line0 < MOST_LINES and last + 1 < len(rows):
        following = rows[last + 1][:MOST_LINE_CHARS]
        more = _continued(following, opener, closer)
        if more is None:
            break
        last += 1
        is_closed = closer is not None and closer in following
        parts.append(more)
    said = " ".join(one for one in parts if one)
    return CommentRequest(text=said, first_line0=line0, last_line0=last) if said else None


def _continued(row: str, opener: str, closer: str | None) -> str | None:
    """Return the words of the line after, when it belongs to the same comment."""
    text = row.strip()
    if _MARK.search(row) is not None:
        return None
    if closer is not None:
        inner = text if text.startswith(closer) else text.lstrip("*").lstrip()
        return _without(inner, closer)
    if not text.lower().startswith(opener.lower()):
        return None
    return text[len(opener) :].strip() or None


def _closer(opener: str) -> str | None:
    return _CLOSERS.get(opener, _CLOSERS.get(opener[:2]) if opener not in {'""', "''"} else None)


def _without(text: str, closer: str | None) -> str:
    return (text if closer is None else text.partition(closer)[0]).strip()
