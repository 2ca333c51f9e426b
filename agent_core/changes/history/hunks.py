"""Hunks of the agent in a text, with their review states, tracked through every later change; pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.values import Value
from agent_core.workspace.diff.minimal_edits import TextEdit, line_edits

HunkState: TypeAlias = Literal["pending", "accepted", "rejected", "userEdited", "orphaned"]
"""`userEdited`: changed by the user or another process, which counts as accepted. `orphaned`: no longer in the text."""
Hunks: TypeAlias = tuple["Hunk", ...]
ID_CHARS = 16


class HunkOrigin(Value, frozen=True, kw_only=True):
    """Which change a hunk comes from."""

    change: str
    """Of all that are told of the change, so that no two hunks of a session have one id."""
    edit: str
    run: RunId | None
    call: ToolCallId | None
    index: int
    """How many changes of the session came before it."""


class Hunk(Value, frozen=True, kw_only=True):
    """Whole lines that the agent put in the place of others."""

    id: str
    """Made of what it is, so that it is the same whenever it is worked out again."""
    maker: HunkOrigin
    start: int
    """Where it is in the text as it is now, in characters."""
    end: int
    old: str
    """Text before the change; after several edits of the same lines, the text before the first unreviewed edit."""
    new: str
    """Text that the agent wrote there."""
    state: HunkState = "pending"

    @property
    def is_pending(self) -> bool:
        """Whether it waits for a word of the user."""
        return self.state == "pending"


class _Place(NamedTuple):
    """Where an edit or a hunk is, in the order in which they are gone through."""

    start: int
    end: int
    is_hunk: bool
    number: int


class _Region(Value, frozen=True, kw_only=True):
    """A stretch of a text with all edits and hunks that reach into one another."""

    start: int
    end: int
    earlier: int
    """By how much the edits before it lengthen the text."""
    grown: int
    """By how much those in it do."""
    hunks: Sequence[Hunk]


_NOBODY: Final = HunkOrigin(change="", edit="", run=None, call=None, index=0)


def edited_by_agent(hunks: Hunks, before: str, after: str, maker: HunkOrigin) -> Hunks:
    """Apply a change of the agent: pending hunks that it touches are merged into it, all others stay unchanged."""
    edits = _Edits(line_edits(before, after))
    kept: list[Hunk] = []
    touched: list[Hunk] = []
    for hunk in hunks:
        if not edits.within(hunk):
            kept.append(edits.shifted(hunk))
        elif hunk.is_pending:
            touched.append(hunk)
        # One that was settled is part of the text that this change began from.
    made = [one for region in _regions(edits, touched) for one in _made(region, before, after)]
    numbered = (_numbered(one, maker, at) for at, one in enumerate(made))
    return _ordered([*kept, *numbered])


def edited_by_user(hunks: Hunks, before: str, after: str) -> Hunks:
    """Follow a change of anybody else: a hunk whose text is as it was before the agent came is rejected by that."""
    edits = _Edits(line_edits(before, after))
    return _ordered([_met(hunk, edits, after) for hunk in hunks])


def revert_hunks(text: str, hunks: Hunks, ids: Collection[str]) -> tuple[str, Hunks]:
    """Return the text without some pending hunks, and what all hunks are then."""
    left = list(hunks)
    for at in range(len(left) - 1, -1, -1):
        hunk = left[at]
        if hunk.id not in ids or not hunk.is_pending:
            continue
        old = _fitting(hunk.old, text, hunk.end)
        text = f"{text[: hunk.start]}{old}{text[hunk.end :]}"
        grown = len(old) - (hunk.end - hunk.start)
        left[at] = replace(hunk, end=hunk.start + len(old), state="rejected")
        left[at + 1 :] = [_moved(one, grown) for one in left[at + 1 :]]
    return text, tuple(left)


def settled(hunks: Hunks, ids: Collection[str]) -> Hunks:
    """Return the hunks with some of those that wait accepted."""
    return tuple(
        replace(hunk, state="accepted") if hunk.id in ids and hunk.is_pending else hunk
        for hunk in hunks
    )


def orphaned(hunks: Hunks) -> Hunks:
    """Return the hunks of a text that is not there any more."""
    return tuple(
        replace(hunk, start=0, end=0, state="orphaned" if hunk.is_pending else hunk.state)
        for hunk in hunks
    )


# ------------------------------------------------------------------ edits


class _Edits:
    """The edits that lead from one text to the next, for finding those at a place."""

    def __init__(self, splices: Sequence[TextEdit]) -> None:
        self.splices = splices
        self._starts = [one.start for one in splices]
        self._ends = [one.end for one in splices]
        self.grown = [0, *accumulate(map(_growth, splices))]
        """By how much the first so many of them lengthen the text."""

    def within(self, hunk: Hunk) -> range:
        """Number the edits that change a hunk; touching is enough for one without text."""
        if hunk.start == hunk.end:
            first, last = bisect_left(self._ends, hunk.start), bisect_right(self._starts, hunk.end)
        else:
            first, last = bisect_right(self._ends, hunk.start), bisect_left(self._starts, hunk.end)
        return range(first, last)

    def shifted(self, hunk: Hunk) -> Hunk:
        """Move a hunk that no edit changes. Text inserted directly before it shifts it, unless the hunk is empty."""
        count = bisect_left(self._ends, hunk.start)
        if count < len(self._ends) and self._ends[count] == hunk.start:
            count += hunk.start < hunk.end or self._starts[count] < self._ends[count]
        return _moved(hunk, self.grown[count])


# ------------------------------------------------------------------ the agent's edits


def _regions(edits: _Edits, hunks: Sequence[Hunk]) -> Iterator[_Region]:
    places = [
        _Place(one.start, one.end, is_hunk=False, number=at) for at, one in enumerate(edits.splices)
    ]
    places += [_Place(one.start, one.end, is_hunk=True, number=at) for at, one in enumerate(hunks)]
    # At one place first what has no text, then the edit, then the hunk that it may change.
    places.sort(key=lambda one: (one.start, one.start < one.end, one.is_hunk))
    at = 0
    while at < len(places):
        members = [places[at]]
        end = places[at].end
        at += 1
        while at < len(places) and _joins(places[at], end, members):
            members.append(places[at])
            end = max(end, places[at].end)
            at += 1
        numbers = [one.number for one in members if not one.is_hunk]
        first, last = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
        yield _Region(
            start=members[0].start,
            end=end,
            earlier=edits.grown[first],
            grown=edits.grown[last] - edits.grown[first],
            hunks=[hunks[one.number] for one in members if one.is_hunk],
        )


def _joins(place: _Place, end: int, members: Sequence[_Place]) -> bool:
    """Return whether the next place belongs to a stretch that ends at `end`: at its very end only a hunk without text."""
    if place.start < end:
        return True
    if place.is_hunk and place.start < place.end:
        return False
    # Edits never touch one another, so the last of them is the one that may end here.
    other = next((one for one in reversed(members) if one.is_hunk is not place.is_hunk), None)
    if other is None or other.end != place.start:
        return False
    return place.is_hunk or other.start == other.end


def _made(region: _Region, before: str, after: str) -> Iterator[Hunk]:
    """Compare what stood in a stretch before the agent came with what stands there now."""
    start = region.start + region.earlier
    end = region.end + region.earlier + region.grown
    old, _ = revert_hunks(
        before[region.start : region.end],
        tuple(_moved(one, -region.start) for one in region.hunks),
        {one.id for one in region.hunks},
    )
    new, grown = after[start:end], 0
    for splice in line_edits(old, new):
        at = start + splice.start + grown
        grown += _growth(splice)
        yield Hunk(
            id="",
            maker=_NOBODY,
            start=at,
            end=at + len(splice.new_text),
            old=old[splice.start : splice.end],
            new=splice.new_text,
        )


def _numbered(hunk: Hunk, maker: HunkOrigin, at: int) -> Hunk:
    hash_input = "\0".join((maker.change, str(at), hunk.old, hunk.new))
    digest = sha256(hash_input.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return replace(hunk, id=digest[:ID_CHARS], maker=maker)


# ------------------------------------------------------------------ edits of others


def _met(hunk: Hunk, edits: _Edits, after: str) -> Hunk:
    numbers = edits.within(hunk)
    if hunk.start == hunk.end and not any(_undeletes(edits.splices[at], hunk) for at in numbers):
        numbers = range(0)
    if not numbers:
        return edits.shifted(hunk)
    first, last = edits.splices[numbers[0]], edits.splices[numbers[-1]]
    start = min(hunk.start, first.start) + edits.grown[numbers[0]]
    end = max(hunk.end, last.end) + edits.grown[numbers[-1] + 1]
    is_own = hunk.start <= first.start and last.end <= hunk.end
    state = hunk.state
    if state == "rejected" and is_own and hunk.new and after[start:end] == hunk.new:
        # Its text is back, as by an undo among other changes: it waits again.
        state = "pending"
    elif hunk.is_pending:
        state = "userEdited"
        if is_own and after[start:end] == hunk.old:
            state = "rejected"
        elif start == end:
            state = "orphaned"
    return replace(hunk, start=start, end=end, state=state)


def _undeletes(splice: TextEdit, hunk: Hunk) -> bool:
    """Return whether an edit changes the place of a deletion: from both sides, or by bringing back what was there."""
    return splice.start < hunk.start < splice.end or hunk.old in splice.new_text


# ------------------------------------------------------------------ both


def _growth(splice: TextEdit) -> int:
    return len(splice.new_text) - (splice.end - splice.start)


def _moved(hunk: Hunk, by: int) -> Hunk:
    return replace(hunk, start=hunk.start + by, end=hunk.end + by) if by else hunk


def _fitting(old: str, text: str, end: int) -> str:
    """Return a last line with its end when it is not the last any more."""
    if not old or old.endswith(("\n", "\r")) or end >= len(text):
        return old
    return f"{old}\r\n" if "\r\n" in text else f"{old}\n"


def _ordered(hunks: Collection[Hunk]) -> Hunks:
    return tuple(sorted(hunks, key=lambda one: (one.start, one.end)))
