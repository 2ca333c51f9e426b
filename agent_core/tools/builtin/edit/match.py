"""Finds the text that an edit names: exactly, then with differences that do not matter."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import as_meant
from agent_core.kernel.values import Value

CRLF = "\r\n"


def with_lf(text: str) -> str:
    """Convert every line ending to LF."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


class Endings:
    """Knows which ending each line of a text has."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lf = with_lf(text)
        self._anchor = (0, 0)
        """An offset in the LF text and the same one in the text itself."""

    def original(self, offset: int) -> int:
        """Turn an offset in the LF text into one in the text itself; cheapest when asked in order."""
        if self.lf is self._text:
            return offset
        self._anchor = (offset, self._from_anchor(offset))
        return self._anchor[1]

    def _from_anchor(self, offset: int) -> int:
        anchor, at = self._anchor if self._anchor[0] <= offset else (0, 0)
        missing = offset - anchor
        while missing:
            stop = at + missing
            stop += self._text.startswith(CRLF, stop - 1)
            # Of every CRLF passed by, one character was of no use for the way.
            missing -= stop - at - self._text.count(CRLF, at, stop)
            at = stop
        return at

    def in_style_of(self, text: str, *, at: int) -> str:
        """Return a text with the ending of the line that holds an offset; the last line takes its neighbour's."""
        if self.lf is self._text or "\n" not in text:
            return text
        newline = self.lf.find("\n", at)
        if newline < 0:
            newline = self.lf.rfind("\n", 0, at)
        if newline < 0:
            return text
        begin = self._from_anchor(newline)
        ending = self._text[begin : begin + 2]
        return text.replace("\n", ending if ending == CRLF else ending[0])


COUNT_LIMIT = 10_000
"""More occurrences than this are not counted."""
CANDIDATE_LIMIT = 4_000
"""At more places than this it is cheaper to take the blanks off every line."""
BLANKS = " \t\v\f\x1c\x1d\x1e\x1f"
"""Blanks that are stripped from the ends of lines, as far as they are ASCII."""


class Occurrences(Value, frozen=True, kw_only=True):
    """How often a text occurs, overlapping or not."""

    count: int
    """At most one more than the limit."""
    place: tuple[int, int] | None
    """Where the first one begins and ends; None: nowhere, or at no border between characters."""


NOWHERE = Occurrences(count=0, place=None)


def occurrences(text: str, wanted: str) -> Occurrences:
    """Find a text as it is, also where it overlaps itself."""
    first = at = text.find(wanted)
    if first < 0 or not wanted:
        return NOWHERE
    count = 0
    while at >= 0 and count <= COUNT_LIMIT:
        count += 1
        at = text.find(wanted, at + 1)
    return Occurrences(count=count, place=(first, first + len(wanted)))


def in_lines(text: str, wanted: str) -> Occurrences | None:
    """Find a text as if no line of the other one had blanks at its end.

    None: that would take too long this way.

    Args:
        text: ASCII with LF endings.
        wanted: The same, without blanks at the ends of its lines.
    """
    if "\n" not in wanted:
        return occurrences(
            text, wanted
        )  # it does not end in a blank, so no blank at an end is in it
    lines = wanted.split("\n")
    rarest = max(range(len(lines)), key=lambda index: len(lines[index]))
    anchor = lines[rarest]
    if not anchor:
        return None
    count, place = 0, None
    at = text.find(anchor)
    for _ in range(CANDIDATE_LIMIT):
        if at < 0:
            return Occurrences(count=count, place=place)
        start = _before(text, at, lines[:rarest])
        end = _after(text, at + len(anchor), lines[rarest + 1 :])
        if start is not None and end is not None:
            count += 1
            place = place or (start, end)
        at = text.find(anchor, at + 1)
    return None


def _before(text: str, end: int, lines: list[str]) -> int | None:
    """Return where lines begin that must stand before an offset; None: they do not."""
    for line in reversed(lines):
        if end == 0 or text[end - 1] != "\n":
            return None
        end -= 1
        while end > 0 and text[end - 1] in BLANKS:
            end -= 1
        if not text.endswith(line, 0, end):
            return None
        end -= len(line)
    return end


def _after(text: str, start: int, lines: list[str]) -> int | None:
    """Return where lines end that must stand after an offset; None: they do not."""
    for line in lines:
        while start < len(text) and text[start] in BLANKS:
            start += 1
        if start == len(text) or text[start] != "\n":
            return None
        start += 1
        if not text.startswith(line, start):
            return None
        start += len(line)
    return start


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


ABOUT_MARKS = (
    " A mark like [redacted:token] stands for a secret that you are not shown and that is still in the file: choose an "
    "oldText without it, and leave the secret where it is."
)
HINT_LINES = 3
HINT_CHARS = 4


class Replacement(Value, frozen=True, kw_only=True):
    """One text for another."""

    old: str
    new: str


class EditSpan(Value, frozen=True, kw_only=True):
    """A part of a text with LF endings, and what stands there afterwards."""

    start: int
    end: int
    new: str


class EditedText(Value, frozen=True, kw_only=True):
    """A text before and after."""

    text: str
    """Afterwards, with the line endings that it had."""
    before_lf: str
    spans: tuple[EditSpan, ...]
    """In `before_lf`, sorted, apart from one another."""


def apply_edits(text: str, edits: Sequence[Replacement], *, path: str) -> EditedText:
    """Replace every `old`; all of them are looked up in the same original text.

    An exact match has precedence over a fuzzy match, which is the text as a model remembers it. Each `old` must match
    exactly once; fuzzy and overlapping matches count too. Text outside the replacements keeps its bytes; new text has
    the line ending of the line where it begins.

    Args:
        text: Without a byte order mark.
        edits: At least one.
        path: For messages.

    Raises:
        ToolError: An `old` is missing or occurs several times, replacements overlap, or nothing would change; the text
            says how to go on.
    """
    from agent_core.tools.builtin.redaction_marks import check_marks  # noqa: PLC0415 - at first use

    endings = Endings(text)
    remembered = FuzzyText(endings.lf)
    found = [
        _Found(
            index=index,
            span=_find(edit, endings.lf, remembered, said=_Said(path, index, len(edits))),
        )
        for index, edit in enumerate(edits)
    ]
    found.sort(key=lambda one: (one.span.start, one.span.end))
    for one, two in pairwise(found):
        if two.span.start < one.span.end:
            first, second = sorted((one.index, two.index))
            message = f"edits[{first}] and edits[{second}] overlap in {path}. Merge them into one edit or target disjoint regions."
            raise ToolError(message)
    spans = tuple(one.span for one in found)
    for one in spans:
        check_marks(one.new, before=endings.lf[one.start : one.end], path=path)
    after = _composed(text, endings, spans)
    if after == text:
        message = f"No changes made to {path}. The replacement produced identical content."
        raise ToolError(message)
    return EditedText(text=after, before_lf=endings.lf, spans=spans)


class _Found(Value, frozen=True, kw_only=True):
    index: int
    span: EditSpan


class _Said(Value, frozen=True):
    """How messages name an edit."""

    path: str
    index: int
    total: int

    def empty(self) -> ToolError:
        what = "oldText" if self.total == 1 else f"edits[{self.index}].oldText"
        return ToolError(f"{what} must not be empty in {self.path}.")

    def missing(self, hint: str) -> ToolError:
        if self.total == 1:
            text = f"Could not find the exact text in {self.path}. The old text must match exactly including all whitespace and newlines."
        else:
            text = f"Could not find edits[{self.index}] in {self.path}. The oldText must match exactly including all whitespace and newlines."
        return ToolError(f"{text}{hint}")

    def several(self, count: int) -> ToolError:
        number = f"more than {COUNT_LIMIT}" if count > COUNT_LIMIT else str(count)
        if self.total == 1:
            return ToolError(
                f"Found {number} occurrences of the text in {self.path}. The text must be unique. Please provide more context to make it unique."
            )
        return ToolError(
            f"Found {number} occurrences of edits[{self.index}] in {self.path}. Each oldText must be unique. Please provide more context to make it unique."
        )


def _find(edit: Replacement, lf: str, remembered: FuzzyText, *, said: _Said) -> EditSpan:
    from agent_core.tools.builtin.redaction_marks import MARK  # noqa: PLC0415 - at first use

    old, new = with_lf(edit.old), with_lf(edit.new)
    if not old:
        raise said.empty()
    exact = occurrences(lf, old)
    alike = _as_remembered(old, exact, remembered)
    count = max(exact.count, alike.count)
    if count > 1:
        raise said.several(count)
    if place := exact.place or alike.place:
        return EditSpan(start=place[0], end=place[1], new=new)
    meant = Replacement(old=as_meant(old), new=as_meant(new))
    if meant.old != old:
        return _find(meant, lf, remembered, said=said)
    raise said.missing(ABOUT_MARKS if MARK.search(old) else _hint(old, remembered))


def _as_remembered(old: str, exact: Occurrences, remembered: FuzzyText) -> Occurrences:
    folded = fuzzy(old)
    if exact.count > COUNT_LIMIT or not folded:
        return NOWHERE
    if folded == old and remembered.is_searched_as_is(old):
        return exact
    return remembered.find(folded)


def _hint(old: str, remembered: FuzzyText) -> str:
    """Return where the first line of a longer text is, if it is there at all."""
    first = fuzzy(old.lstrip("\n").partition("\n")[0]).strip()
    if len(first) < HINT_CHARS or "\n" not in old.strip("\n"):
        return ""
    folded = remembered.folded
    lines: list[str] = []
    at = folded.find(first)
    while at >= 0 and len(lines) < HINT_LINES:
        lines.append(str(folded.count("\n", 0, at) + 1))
        newline = folded.find("\n", at)
        at = -1 if newline < 0 else folded.find(first, newline)
    if not lines:
        return ""
    return f" Its first line is at line {', '.join(lines)}: read the file from there and copy the text as it is now."


def _composed(text: str, endings: Endings, spans: Sequence[EditSpan]) -> str:
    parts: list[str] = []
    done = 0
    for span in spans:
        parts.append(text[done : endings.original(span.start)])
        parts.append(endings.in_style_of(span.new, at=span.start))
        done = endings.original(span.end)
    parts.append(text[done:])
    return "".join(parts)
