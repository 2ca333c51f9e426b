"""Texts as a model remembers them: without trailing spaces, curly quotes, long dashes, wide spaces: pure."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property

from agent_core.tools.builtin.edit.occurrences import Occurrences, in_lines, occurrences

TRANSLATED: Mapping[int, str] = (
    dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B), "'")
    | dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F), '"')
    | dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-")
    | dict.fromkeys((0x00A0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000), " ")
)
CHANGED = re.compile(f"[{''.join(map(chr, TRANSLATED))}]")
JAMO = range(0x1160, 0x1200)
"""Parts of Korean syllables, which join the one before them."""


def fuzzy(text: str) -> str:
    """Return a text with LF endings as a model remembers it."""
    return "\n".join([line.rstrip() for line in _fold(text).split("\n")])


class FuzzyText:
    """A text with LF endings, searched as a model remembers it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def find(self, wanted: str) -> Occurrences:
        """Find a folded text.

        The place is that in the text itself; it is missing when it is inside of what folding made of one
        character.
        """
        if self._text.isascii():
            # Folding takes blanks off the ends of lines only, which can be seen at the place.
            found = in_lines(self._text, wanted)
            if found is not None:
                return found
        found = occurrences(self.folded, wanted)
        if found.place is None:
            return found
        start, end = self.original(found.place[0]), self.original(found.place[1])
        place = None if start is None or end is None else (start, end)
        return Occurrences(count=found.count, place=place)

    def is_searched_as_is(self, wanted: str) -> bool:
        """Return whether folding the text makes no difference to how often a folded text is found in it."""
        return "\n" not in wanted and self._text.isascii()

    @cached_property
    def folded(self) -> str:
        """The text as a model remembers it."""
        return fuzzy(self._text)

    @cached_property
    def _lines(self) -> list[str]:
        return self._text.split("\n")

    def original(self, offset: int) -> int | None:
        """Turn an offset in the folded text into one in the text; None: inside of what folding made of one character."""
        folded = self.folded
        row = folded.count("\n", 0, offset)
        column = offset - (folded.rfind("\n", 0, offset) + 1)
        line = self._lines[row]
        begin = sum(map(len, self._lines[:row])) + row
        if line.isascii():
            return begin + column
        at = _borders(line).get(column)
        return None if at is None else begin + at


def _fold(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", CHANGED.sub(lambda found: TRANSLATED[ord(found[0])], text))


def _borders(line: str) -> Mapping[int, int]:
    """Map the places in a folded line that are borders between characters of the line."""
    kept = line.rstrip()
    borders = {0: 0}
    folded = ""
    begin = 0
    for end in range(1, len(kept) + 1):
        if end < len(kept) and _joins(kept[end]):
            continue
        folded += _fold(kept[begin:end])
        borders[len(folded)] = end
        begin = end
    if folded != _fold(kept):
        # Characters joined that were not expected to: only whole lines can be told apart then.
        return {0: 0, len(_fold(kept)): len(kept)}
    return borders


def _joins(character: str) -> bool:
    """Return whether a character belongs to the one before it."""
    return unicodedata.category(character).startswith("M") or ord(character) in JAMO
