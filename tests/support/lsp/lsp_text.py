"""Positions and text edits in the three position encodings of LSP; pure functions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Json = dict[str, Any]
Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")


class EditError(ValueError):
    """An edit that an editor refuses: it overlaps another, or begins inside a character."""


@dataclass(frozen=True, slots=True)
class Splice:
    """One edit with its place in the text, in characters."""

    start: int
    end: int
    new_text: str


class Lines:
    """A text with the places where its lines begin; edits and positions refer to this state of it."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.text = text
        self.encoding: Encoding = encoding
        ends = [match.span() for match in _LINE_END.finditer(text)]
        self._starts = [0, *(end for _, end in ends)]
        self._stops = [*(start for start, _ in ends), len(text)]

    def offset(self, position: Json) -> int:
        """Give the index in the text of a position; places beyond the end are moved back to it.

        Raises:
            EditError: The position lies inside a character.
        """
        line, units = position["line"], position["character"]
        if line >= len(self._starts):
            return len(self.text)
        content = self.text[self._starts[line] : self._stops[line]]
        if content.isascii() or self.encoding == "utf-32":
            return self._starts[line] + min(units, len(content))
        passed = 0
        while units > 0 and passed < len(content):
            units -= width(content[passed], self.encoding)
            passed += 1
        if units < 0:
            message = f"{position!r} lies inside a character in {self.encoding}"
            raise EditError(message)
        return self._starts[line] + passed

    def position(self, offset: int) -> Json:
        """Give the position of an index in the text; inside a line end, the end of the line."""
        line = 0
        for number, start in enumerate(self._starts):
            if start > offset:
                break
            line = number
        content = self.text[self._starts[line] : min(offset, self._stops[line])]
        return {"line": line, "character": sum(width(char, self.encoding) for char in content)}

    def range(self, start: int, end: int) -> Json:
        """Give the range between two indexes of the text."""
        return {"start": self.position(start), "end": self.position(end)}

    def exists(self, position: Json) -> bool:
        """Tell whether a position lies within the text, not beyond the end of its line or the last line."""
        if not 0 <= position["line"] < len(self._starts):
            return False
        line = position["line"]
        content = self.text[self._starts[line] : self._stops[line]]
        return 0 <= position["character"] <= sum(width(char, self.encoding) for char in content)


def width(char: str, encoding: Encoding) -> int:
    """Give the number of code units of a character."""
    match encoding:
        case "utf-8":
            return len(char.encode("utf-8", "surrogatepass"))
        case "utf-16":
            return 2 if char > "\uffff" else 1
        case "utf-32":
            return 1


def splices(lines: Lines, edits: Sequence[Json]) -> list[Splice]:
    """Give the edits in order of their place; insertions at one place keep the order of the list.

    Raises:
        EditError: Two edits overlap, or one ends before it begins.
    """
    found = [
        Splice(
            lines.offset(edit["range"]["start"]),
            lines.offset(edit["range"]["end"]),
            edit["newText"],
        )
        for edit in edits
    ]
    for one in found:
        if one.end < one.start:
            message = f"an edit ends at {one.end} before it begins at {one.start}"
            raise EditError(message)
    found.sort(key=lambda one: (one.start, one.end))
    for before, after in pairwise(found):
        if after.start < before.end:
            message = f"two edits overlap at {after.start}"
            raise EditError(message)
    return found


def spliced(text: str, ordered: Sequence[Splice]) -> str:
    """Give the text after edits that all refer to it as it is now."""
    parts: list[str] = []
    done = 0
    for one in ordered:
        parts += (text[done : one.start], one.new_text)
        done = one.end
    return "".join((*parts, text[done:]))


def apply_edits(text: str, edits: Sequence[Json], *, encoding: Encoding) -> str:
    """Give the text after `TextEdit`s, which all refer to the text as it is now."""
    return spliced(text, splices(Lines(text, encoding), edits))


def content_changes(lines: Lines, ordered: Sequence[Splice]) -> list[Json]:
    """Give edits as the changes of a didChange, each of which refers to the text after the one before.

    The last place comes first, so that no change moves the place of the next.
    """
    return [
        {"range": lines.range(one.start, one.end), "text": one.new_text}
        for one in reversed(ordered)
    ]


def apply_changes(text: str, changes: Sequence[Json], *, encoding: Encoding) -> str:
    """Give the text after the changes of a didChange, as a server has to."""
    for change in changes:
        if "range" not in change:
            text = change["text"]
            continue
        lines = Lines(text, encoding)
        start, end = change["range"]["start"], change["range"]["end"]
        text = spliced(text, [Splice(lines.offset(start), lines.offset(end), change["text"])])
    return text
