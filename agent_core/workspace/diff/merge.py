"""Three-way merge of two changes of one text: the combined text, and its conflicts; pure."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.diff.minimal_edits import (
    TextEdit,
    line_edits,
    line_hunks,
    line_number0,
    lines_of,
    within_lines,
)

ENDS: Final = frozenset({"\n", "\r\n", "\r"})
_LAST: Final = frozenset({"\n", "\r", ""})
"""Characters before the beginning of a line; the empty string before the first line."""


class LineRange(Value, frozen=True, kw_only=True):
    """A run of whole lines in one of the three texts."""

    start: int
    """Number of the first line, from 0."""
    end: int
    """One after the last."""
    text: str


class Conflict(Value, frozen=True, kw_only=True):
    """The same lines, which both sides changed so that nobody can say what was meant."""

    base: LineRange
    ours: LineRange
    theirs: LineRange


class MergeResult(Value, frozen=True, kw_only=True):
    """Result of a merge."""

    text: str
    """With all changes of both sides; where they conflict, theirs alone."""
    conflicts: tuple[Conflict, ...] = ()


class _Region(Value, frozen=True, kw_only=True):
    """A stretch of the base with what each side did in it; no other change reaches into it."""

    start: int
    end: int
    ours: Sequence[TextEdit]
    theirs: Sequence[TextEdit]


def merge(base: str, ours: str, theirs: str) -> MergeResult:
    r"""Return the text that has what both sides did to `base`; the order of the sides does not matter.

    Lines are compared first. Changes of lines that are neighbours are both taken, for their order is known; two
    insertions at one place are not. Where both changed the same line, both are taken if each changed one stretch of
    it and a whole word stands between them, and also if one changed only its line end. The same change on both
    sides counts once. The time is bounded, as that of `line_edits` is.
    """
    if theirs in (ours, base):
        return MergeResult(text=ours)
    if ours == base:
        return MergeResult(text=theirs)
    return _merged(base, ours, theirs, settle=lambda conflict: conflict.theirs.text)


def merge_all(base: str, ours: str, theirs: str) -> str:
    """Return a text with all insertions of both sides, in any order where the order is unknown; there are no conflicts.

    Text that one side deleted is gone, except for the insertions of the other side inside it.
    """
    return _merged(base, ours, theirs, settle=_all_of).text


def _merged(base: str, ours: str, theirs: str, *, settle: Callable[[Conflict], str]) -> MergeResult:
    parts: list[str] = []
    conflicts: list[Conflict] = []
    done = 0
    counted = _Counted(base, ours, theirs)
    mine, yours = line_edits(base, ours), line_edits(base, theirs)
    for region in _regions(_aligned(base, mine, yours), yours):
        parts.append(base[done : region.start])
        conflict = counted.lines_of(region)
        # Changes of neighbouring lines are both taken, unlike in git (decision 0030).
        both = _both(base, region, ours=conflict.ours.text, theirs=conflict.theirs.text)
        if both is None:
            conflicts.append(conflict)
            both = settle(conflict)
        parts.append(both)
        done = region.end
    parts.append(base[done:])
    return MergeResult(text="".join(parts), conflicts=tuple(conflicts))


def _all_of(conflict: Conflict) -> str:
    base = conflict.base.text
    sides = [line_hunks(base, side.text) for side in (conflict.ours, conflict.theirs)]
    gone = [False] * len(base)
    brought: list[list[str]] = [[] for _ in range(len(base) + 1)]
    for side, hunks in zip((conflict.ours, conflict.theirs), sides, strict=True):
        for hunk in hunks:
            gone[hunk.old_start : hunk.old_end] = [True] * (hunk.old_end - hunk.old_start)
            new_text = side.text[hunk.new_start : hunk.new_end]
            # The same on both sides is one.
            if new_text not in brought[hunk.old_start]:
                brought[hunk.old_start].append(new_text)
    parts: list[str] = []
    for at, char in enumerate(base):
        parts += brought[at]
        if not gone[at]:
            parts.append(char)
    return "".join((*parts, *brought[len(base)]))


def _aligned(base: str, ours: Sequence[TextEdit], theirs: Sequence[TextEdit]) -> list[TextEdit]:
    """Return our changes, those that are also theirs at their place.

    Among equal lines an insertion or deletion has several places that come to the same, and what else a side changed
    decides which one the comparison finds.
    """
    lowest = {_lowest(base, theirs, at): one for at, one in enumerate(theirs)}
    aligned: list[TextEdit] = []
    for at, one in enumerate(ours):
        same = lowest.get(_lowest(base, ours, at), one)
        is_after = not aligned or aligned[-1].end < same.start
        is_before = at + 1 == len(ours) or same.end < ours[at + 1].start
        aligned.append(same if is_after and is_before else one)
    return aligned


def _lowest(base: str, edits: Sequence[TextEdit], at: int) -> tuple[int, int, str]:
    """Return the last place of an insertion or deletion of whole lines that comes to the same; other edits stay."""
    one = edits[at]
    whole = one.new_text or base[one.start : one.end]
    if (one.new_text and one.start < one.end) or not whole.endswith(("\n", "\r")):
        return _key(one)
    limit = edits[at + 1].start if at + 1 < len(edits) else len(base)
    lines = lines_of(whole)
    moved = passed = 0
    while base.startswith(line := lines[moved % len(lines)], one.end + passed, limit):
        passed += len(line)
        moved += 1
    turned = moved % len(lines)
    new_text = "".join((*lines[turned:], *lines[:turned])) if one.new_text else ""
    return one.start + passed, one.end + passed, new_text


def _regions(ours: Sequence[TextEdit], theirs: Sequence[TextEdit]) -> Iterator[_Region]:
    """Group the splices of both sides that overlap. Each side is in order and does not touch itself."""
    at_ours = at_theirs = 0
    while at_ours < len(ours) or at_theirs < len(theirs):
        first = min((*ours[at_ours : at_ours + 1], *theirs[at_theirs : at_theirs + 1]), key=_place)
        start, end = first.start, first.end
        end_ours, end_theirs = at_ours, at_theirs
        grows = True
        while grows:
            grows = False
            if end_ours < len(ours) and _reaches(ours[end_ours], start, end):
                end, end_ours, grows = max(end, ours[end_ours].end), end_ours + 1, True
            if end_theirs < len(theirs) and _reaches(theirs[end_theirs], start, end):
                end, end_theirs, grows = max(end, theirs[end_theirs].end), end_theirs + 1, True
        yield _Region(
            start=start,
            end=end,
            ours=ours[at_ours:end_ours],
            theirs=theirs[at_theirs:end_theirs],
        )
        at_ours, at_theirs = end_ours, end_theirs


def _place(one: TextEdit) -> tuple[int, int]:
    return one.start, one.end


def _reaches(one: TextEdit, start: int, end: int) -> bool:
    """Return whether a change belongs to a stretch that begins no later than it: touching is not enough."""
    return one.start < end or (one.start, one.end) == (start, end)


class _Counted:
    """Knows where a stretch of the base is in the other two texts; asked from the beginning to the end."""

    def __init__(self, base: str, ours: str, theirs: str) -> None:
        self._base = base
        self._texts = (ours, theirs)
        self._moved = [0, 0]
        """How many characters each side has more than the base before the place asked for last."""
        self._cursors = [(0, 0), (0, 0), (0, 0)]
        """An offset in each text, and the number of the line there."""

    def lines_of(self, region: _Region) -> Conflict:
        sides = (self._side(0, region), self._side(1, region))
        base = self._lines(2, self._base, region.start, region.end)
        return Conflict(base=base, ours=sides[0], theirs=sides[1])

    def _side(self, side: int, region: _Region) -> LineRange:
        start = region.start + self._moved[side]
        for one in region.theirs if side else region.ours:
            self._moved[side] += len(one.new_text) - (one.end - one.start)
        return self._lines(side, self._texts[side], start, region.end + self._moved[side])

    def _lines(self, which: int, text: str, start: int, end: int) -> LineRange:
        offset, number = self._cursors[which]
        number += line_number0(text[offset:start], start - offset)
        part = text[start:end]
        after = number + line_number0(part, len(part))
        self._cursors[which] = (end, after)
        is_cut = part != "" and not part.endswith(("\n", "\r"))
        return LineRange(start=number, end=after + is_cut, text=part)


def _both(base: str, region: _Region, *, ours: str, theirs: str) -> str | None:
    """Return what a stretch becomes when both changes are taken; None when that cannot be said."""
    if not region.theirs or ours == theirs:
        return ours
    if not region.ours:
        return theirs
    mine = _fine(base, region.ours)
    yours = _fine(base, region.theirs)
    if not _are_apart(base, mine, yours):
        return None
    # The same change on both sides is one.
    changes = sorted({_key(one): one for one in chain(mine, yours)}.values(), key=_place)
    parts: list[str] = []
    done = region.start
    for one in changes:
        parts += (base[done : one.start], one.new_text)
        done = one.end
    return "".join((*parts, base[done : region.end]))


def _fine(base: str, wholes: Sequence[TextEdit]) -> list[TextEdit]:
    return [one for whole in wholes for one in within_lines(base, whole)]


def _key(one: TextEdit) -> tuple[int, int, str]:
    return one.start, one.end, one.new_text


def _are_apart(base: str, mine: Sequence[TextEdit], yours: Sequence[TextEdit]) -> bool:
    """Return whether no change of one side is near one of the other, but for those that are the same."""
    at = 0
    for one in mine:
        # What ends well before this one cannot be near any later one either.
        while at < len(yours) and yours[at].end < one.start and not _is_near(base, yours[at], one):
            at += 1
        for other in yours[at:]:
            if other.start > one.end and not _is_near(base, one, other):
                break
            if _key(one) != _key(other) and _is_near(base, one, other):
                return False
    return True


def _is_near(base: str, one: TextEdit, other: TextEdit) -> bool:
    """Return whether two changes share a place or a word, or nobody knows which comes first."""
    first, second = sorted((one, other), key=_place)
    if first.end > second.start or _place(first) == _place(second):
        return True
    if _makes_end_of_end(base, second) or _is_of_whole_lines(base, first):
        return False
    return all(char.isalnum() or char == "_" for char in base[first.end : second.start])


def _makes_end_of_end(base: str, one: TextEdit) -> bool:
    """Return whether a change is about the end of a line alone; that of the last line may come or go."""
    ends = ENDS if one.end < len(base) else {*ENDS, ""}
    return base[one.start : one.end] in ends and one.new_text in ends


def _is_of_whole_lines(base: str, one: TextEdit) -> bool:
    """Return whether what follows a change begins a line before and after it."""
    return base[max(0, one.end - 1) : one.end] in _LAST and one.new_text.endswith(("\n", "\r"))
