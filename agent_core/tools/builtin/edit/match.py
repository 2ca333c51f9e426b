"""Finds what is to be replaced, once and only once, and replaces nothing else: pure."""

from collections.abc import Sequence
from itertools import pairwise

from agent_core.kernel.errors import ToolError
from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import as_meant
from agent_core.tools.builtin.edit.fuzzy_text import FuzzyText, fuzzy
from agent_core.tools.builtin.edit.line_endings import Endings, with_lf
from agent_core.tools.builtin.edit.occurrences import (
    COUNT_LIMIT,
    NOWHERE,
    Occurrences,
    occurrences,
)
from agent_core.tools.builtin.redaction_marks import MARK, check_marks

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
