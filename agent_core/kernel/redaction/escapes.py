"""Reads the escapes of JSON, program texts and shells, so that a secret behind or across one is found: pure, linear."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from typing import Final

from agent_core.kernel.values import Value

BEHIND_ESCAPE: Final = (
    r"(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\u\{[0-9A-Fa-f]\})"
    r"|(?<=\\U[0-9A-Fa-f]{8})|(?<=\\[0-3][0-7]{2})|(?<=[%=][0-9A-F]{2})"
)
"""Alternatives that hold directly behind an escape: its last sign is no part of the word that follows."""
_REST: Final = (
    r"[abefnrtv]|0(?![0-7])|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}"
)
_DIGITS: Final = r"u00(?P<u>[0-7][0-9A-Fa-f])|u\{(?P<b>[0-7]?[0-9A-Fa-f])\}|U000000(?P<l>[0-7][0-9A-Fa-f])|x(?P<x>[0-7][0-9A-Fa-f])"
_OCTAL: Final = r"(?P<o>[01][0-7]{2})"
# A line that goes on: a backslash and a break, or both as JSON writes them: 3 backslashes, 6 in JSON in JSON, or 12.
_JOIN: Final = r"(?<!\\)\\++\r?\n[ \t]*|(?<!\\)(?:\\{3}|\\{6}|\\{12})(?:r(?:\\{1,2}|\\{4}))?n(?:[ \t]|\\{1,4}t)*"
_ESCAPE: Final = rf"(?P<join>{_JOIN})|(?<!\\)\\++(?:{_DIGITS}|{_OCTAL}|(?P<sign>[/\"'])|(?P<control>[abefnrtv0]))"
# Begins with a plain backslash: nearly all texts have none of these, and so the search is quick.
_UNREADABLE: Final = (
    r"\\(?:[/\r\n]|u(?:00[0-7]|\{)|U000000[0-7]|x[0-7]|[01][0-7]{2}|\\{2}(?:r\\{1,4})?n)"
)
_UNFINISHED: Final = r"\\+(?:u[0-9A-Fa-f]{0,3}|u\{[0-9A-Fa-f]{0,2}|U[0-9A-Fa-f]{0,7}|x[0-9A-Fa-f]?|[01][0-7]?|r\\*|\r)?$"
_LONGEST_CHARS: Final = 16
"""No unfinished escape is longer."""
_CONTROLS: Final[Mapping[str, str]] = {"t": "\t", "e": "\x1b", "0": "\0"}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Unescaped(Value, frozen=True, kw_only=True):
    """A text with its escapes read, and where its signs stood."""

    text: str
    ends: tuple[int, ...]
    """Where in `text` each escape ends, in order; the first is 0."""
    ends_before: tuple[int, ...]
    """Where it ended before it was read."""

    def place_before(self, place: int) -> int:
        """Return where in the original text a place of `text` was."""
        nearest = bisect_right(self.ends, place) - 1
        return self.ends_before[nearest] + place - self.ends[nearest]


def unescaped(text: str) -> Unescaped | None:
    """Return the text with its escapes read; None: there is none that patterns cannot look past by themselves."""
    if _compiled(_UNREADABLE).search(text) is None:
        return None
    return _read(text)


def unescaped_beginning(text: str) -> Unescaped | None:
    """Return the same for a text that goes on: an escape that may be unfinished at its end is left out."""
    unfinished = _compiled(_UNFINISHED).search(text, len(text) - _LONGEST_CHARS)
    if unfinished is None:
        return unescaped(text)
    head = text[: unfinished.start()]
    return unescaped(head) or Unescaped(text=head, ends=(0,), ends_before=(0,))


def escape_end(text: str, place: int) -> int:
    """Return where the escape ends whose backslash stands before `place`; `place` if there is none."""
    if place == 0 or text[place - 1] != "\\":
        return place
    rest = _compiled(_REST).match(text, place)
    return place if rest is None else rest.end()


def _read(text: str) -> Unescaped:
    pieces: list[str] = []
    ends, ends_before = [0], [0]
    size = 0
    for escape in _compiled(_ESCAPE).finditer(text):
        piece = text[ends_before[-1] : escape.start()] + _meaning(escape)
        pieces.append(piece)
        size += len(piece)
        ends.append(size)
        ends_before.append(escape.end())
    pieces.append(text[ends_before[-1] :])
    return Unescaped(text="".join(pieces), ends=tuple(ends), ends_before=tuple(ends_before))


def _meaning(escape: re.Match[str]) -> str:
    kind, written = escape.lastgroup, escape[escape.lastgroup or 0]
    match kind:
        case "join":
            return ""
        case "sign":
            return written
        case "control":
            return _CONTROLS.get(written, "\n")
        case "o":
            return chr(int(written, 8))
        case _:
            return chr(int(written, 16))
