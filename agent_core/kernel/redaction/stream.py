"""Cuts secrets out of a text that comes in pieces: the end is kept back while it may be the beginning of one."""

from collections.abc import Iterable
from typing import Final, Protocol

from agent_core.kernel.redaction.pattern_search import LONGEST_CHARS, SecretSpan

CONTEXT_CHARS: Final = 160
"""Length in characters of the earlier text kept as context: the text before a value marks it as a secret."""
KEPT_BACK_CHARS: Final = 2 * LONGEST_CHARS
"""More is never kept back, so that a text without end needs no memory without end."""
UNTROUBLED_CHARS: Final = 2_048
"""So much may be kept back and still be looked at with every piece."""
_GROWTH: Final = 4
"""Of more, the next look comes when a quarter has been added: else a word without end takes a square of its length."""
_WORD_ENDS: Final = " \t\r\n\"'`,;<>|\\"


class Finder(Protocol):
    """Finds secrets."""

    def spans(self, text: str, /) -> Iterable[SecretSpan]:
        """Find them; spans may overlap and come in no order."""
        ...

    def begins_at(self, text: str, /) -> int:
        """Return where the end of a text may be the beginning of a secret; the text's length: nowhere."""
        ...


class SecretStream:
    """One text in pieces. The results of `push` and `finish`, joined, are the text without its secrets."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._left = ""
        """The end of what has left, as it was."""
        self._kept = ""
        self._looked_at_chars = 0
        """How much was kept back after the last look."""
        self._inside = False
        """A secret was longer than what may be kept back: the rest of its word goes too."""

    def push(self, text: str) -> str:
        """Add text; return the part that can leave, without secrets."""
        self._kept += self._beyond(text)
        if not self._kept or self._can_wait(text):
            return ""
        window = self._left + self._kept
        spans = joined(self._finder.spans(window))
        cut = _outside(self._finder.begins_at(window), spans, least=len(self._left))
        if len(window) - cut > KEPT_BACK_CHARS:
            cut = len(window)
        begin, end, _ = spans[-1] if spans else (0, 0, "")
        self._inside = end == cut == len(window) and end - begin >= LONGEST_CHARS
        return self._leave(window, cut, spans)

    def finish(self) -> str:
        """Return what was kept back; another text can begin then."""
        window = self._left + self._kept
        text = self._leave(window, len(window), joined(self._finder.spans(window)))
        self._left = ""
        self._inside = False
        return text

    def _leave(self, window: str, cut: int, spans: list[SecretSpan]) -> str:
        """Return what stands between what has left and the cut, without what lies in spans."""
        first = len(self._left)
        text = cut_out(
            window[:cut], [span for span in spans if first < span[1] <= cut], first=first
        )
        self._left = window[max(0, cut - CONTEXT_CHARS) : cut]
        self._kept = window[cut:]
        self._looked_at_chars = len(self._kept)
        return text

    def _can_wait(self, text: str) -> bool:
        """Return whether a long word only goes on, so that a look would let nothing leave."""
        before = self._looked_at_chars
        if before < UNTROUBLED_CHARS or any(sign in text for sign in _WORD_ENDS):
            return False
        return len(self._kept) < before + before // _GROWTH

    def _beyond(self, text: str) -> str:
        if not self._inside:
            return text
        ends = [place for sign in _WORD_ENDS if (place := text.find(sign)) >= 0]
        if not ends:
            return ""
        self._inside = False
        return text[min(ends) :]


def joined(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort spans and merge those that overlap; a merged span has the kind of its first."""
    whole: list[SecretSpan] = []
    for begin, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if whole and begin < whole[-1][1]:
            first, last, name = whole[-1]
            whole[-1] = (first, max(last, end), name)
        else:
            whole.append((begin, end, kind))
    return whole


def cut_out(text: str, spans: Iterable[SecretSpan], *, first: int = 0) -> str:
    """Return a text from `first` on with a mark in the place of each span; spans are in order and apart."""
    pieces: list[str] = []
    place = first
    for begin, end, kind in spans:
        pieces.extend((text[place : max(begin, place)], mark(kind)))
        place = end
    pieces.append(text[place:])
    return "".join(pieces)


def mark(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted:{kind}]"


def _outside(cut: int, spans: list[SecretSpan], *, least: int) -> int:
    """Move a cut to the beginning of the span that it lies in."""
    for begin, end, _ in reversed(spans):
        if begin < cut < end:
            cut = begin
    return max(cut, least)
