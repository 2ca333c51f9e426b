"""Hunks of the agent in one file, with their review states, tracked through every later change; pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.changes.values import Change, FileVersion, HunkDecision, LineCounts, Op, line_count
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.values import Value

if TYPE_CHECKING:
    from agent_core.workspace.diff.minimal_edits import TextEdit

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


def edited_by_agent(
    hunks: Hunks, before: str, after: str, maker: HunkOrigin, *, edits: "TextEdits | None" = None
) -> Hunks:
    """Apply a change of the agent: pending hunks that it touches are merged into it, all others stay unchanged.

    Args:
        hunks: Those of the text before the change.
        before: The text before it.
        after: The text after it.
        maker: Origin of the new hunks.
        edits: The edits from `before` to `after`; None: they are computed.
    """
    edits = edits or TextEdits(before, after)
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


def edited_by_user(
    hunks: Hunks, before: str, after: str, *, edits: "TextEdits | None" = None
) -> Hunks:
    """Follow a change of anybody else: a hunk whose text is as it was before the agent came is rejected by that.

    The arguments are those of `edited_by_agent`.
    """
    edits = edits or TextEdits(before, after)
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


class TextEdits:
    """The edits of whole lines that lead from one text to the next, for finding those at a place."""

    def __init__(self, before: str, after: str) -> None:
        from agent_core.workspace.diff.minimal_edits import line_edits  # noqa: PLC0415 - at first use

        self.splices: Sequence[TextEdit] = line_edits(before, after)
        self._starts = [one.start for one in self.splices]
        self._ends = [one.end for one in self.splices]
        self.grown = [0, *accumulate(map(_growth, self.splices))]
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


def _regions(edits: TextEdits, hunks: Sequence[Hunk]) -> Iterator[_Region]:
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
    from agent_core.workspace.diff.minimal_edits import line_edits  # noqa: PLC0415 - at first use

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


def _met(hunk: Hunk, edits: TextEdits, after: str) -> Hunk:
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


def _undeletes(splice: "TextEdit", hunk: Hunk) -> bool:
    """Return whether an edit changes the place of a deletion: from both sides, or by bringing back what was there."""
    return splice.start < hunk.start < splice.end or hunk.old in splice.new_text


# ------------------------------------------------------------------ both


def _growth(splice: "TextEdit") -> int:
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


GONE: Final[frozenset[HunkState]] = frozenset({"rejected", "orphaned"})
"""States of hunks of which nothing is in the text."""
_UNDONE: Final[Mapping[HunkState, HunkState]] = {
    "pending": "rejected",
    "rejected": "rejected",
    "accepted": "orphaned",
    "userEdited": "orphaned",
    "orphaned": "orphaned",
}
"""State of a hunk after a text from before it is restored."""
REMEMBERED: Final = 32
"""How many edits back it is seen at once that the user undid them."""


class Texts(Value, frozen=True, kw_only=True):
    """Text of a file before and after a change. None: unknown, or not a text. Empty: the file did not exist."""

    before: str | None
    after: str | None


class FileReview(Value, frozen=True, kw_only=True):
    """A file that the session changed, at one moment."""

    path: Path
    origin: Path | None
    """Where it was before the session touched it; None: it was not there."""
    first: FileVersion | None
    """Before the first change; None: nothing."""
    last: FileVersion | None
    """After the last; None: nothing is there."""
    text: str | None
    """None: it is no text, or nobody knows it."""
    hunks: Hunks = ()
    run_hunks: Hunks = ()
    """Difference that the last run made to the text as the run found it, regardless of earlier pending hunks."""
    whole: HunkState | None = None
    """Of what hunks do not say: that it came, went or moved, or was changed and is no text. None: there is no such."""
    maker: HunkOrigin | None = None
    """Of the last change by the agent."""
    runs: tuple[tuple[RunId | None, int], ...] = ()
    """The runs that changed it, each with the number of its change; oldest first."""

    @property
    def op(self) -> Op:
        """Operation from the first state to the last."""
        if self.last is None:
            return "delete"
        if self.first is None:
            return "add"
        return "modify" if self.origin == self.path else "move"

    @property
    def is_pending(self) -> bool:
        """Whether something of it waits for the user's word."""
        return self.waits_whole or any(one.is_pending for one in self.hunks)

    @property
    def waits_whole(self) -> bool:
        """Whether the file itself waits, for there are no hunks to speak of."""
        return self.whole == "pending" and not self.hunks and not self._came_and_went

    @property
    def _came_and_went(self) -> bool:
        return self.first is None and self.last is None

    def pending(self) -> LineCounts:
        """Count what waits for the user's word."""
        waiting = [one for one in self.hunks if one.is_pending]
        return LineCounts(
            files=int(self.is_pending),
            additions=sum(line_count(one.new) for one in waiting),
            deletions=sum(line_count(one.old) for one in waiting),
            unreviewed=len(waiting) + int(self.waits_whole),
        )

    def of_run(self, run: RunId) -> LineCounts:
        """Count what a run changed and still stands."""
        if run not in {one for one, _ in self.runs}:
            return LineCounts()
        own = [one for one in self.hunks if one.maker.run == run]
        is_last = self.maker is not None and self.maker.run == run
        stands = [one for one in (self.run_hunks if is_last else own) if one.state not in GONE]
        has_whole = self.whole is not None and self.whole != "rejected" and not self.hunks
        has_whole = has_whole and is_last and not self._came_and_went
        return LineCounts(
            files=int(bool(stands) or has_whole),
            additions=sum(line_count(one.new) for one in stands),
            deletions=sum(line_count(one.old) for one in stands),
            unreviewed=sum(one.is_pending for one in own) + int(has_whole and self.waits_whole),
        )


class _Mark(Value, frozen=True, kw_only=True):
    """The text right before a change by this session, and its hunks then; rejections and restores included."""

    key: tuple[int, int]
    hunks: Hunks
    whole: HunkState | None


class HunkTracker(Struct, kw_only=True):
    """Follows one file from change to change."""

    now: FileReview
    _marks: list[_Mark] = msgspec.field(default_factory=list)
    _rejected: dict[str, HunkDecision] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, change: Change) -> "HunkTracker":
        """Begin with a file as it was before its first change."""
        there = None if change.before is None else (change.source or change.path)
        now = FileReview(
            path=change.path, origin=there, first=change.before, last=change.before, text=None
        )
        return cls(now=now)

    def follow(self, change: Change, texts: Texts, *, index: int) -> None:
        """Apply one change.

        Args:
            change: A change of this file.
            texts: Text of the file before and after it.
            index: Number of earlier changes of the session.
        """
        maker = HunkOrigin(
            change=f"{change.id}\0{change.path}\0{index}",
            edit=change.id,
            run=change.run,
            call=change.call,
            index=index,
        )
        agent = maker if change.by in {"tool", "process"} else None
        edits: TextEdits | None = None
        if texts.before is not None and texts.after is not None:
            edits = TextEdits(texts.before, texts.after)
        run_hunks = self._run_hunks(change, texts, agent, edits)
        is_first = not self.now.runs
        if not is_first and (texts.before is None or self.now.text is None):
            self.now = replace(self.now, hunks=orphaned(self.now.hunks))
        elif not is_first and texts.before is not None:
            self.now = self._moved_to(texts.before)
        if texts.before is not None and texts.before != texts.after:
            mark = _Mark(key=_key(texts.before), hunks=self.now.hunks, whole=self.now.whole)
            self._marks = [*self._marks, mark][-REMEMBERED:]
        made = self._changed(change, texts, agent, edits)
        self.now = replace(
            self.now,
            path=change.path,
            last=change.after,
            text=texts.after,
            hunks=made,
            run_hunks=run_hunks,
            whole=self._whole(change, texts, edits),
            maker=agent or self.now.maker,
            runs=(*self.now.runs, (change.run, index)),
        )

    def judge(self, verdict: HunkDecision) -> None:
        """Apply a verdict; a rejection is stored and changes the hunks with the edit that follows."""
        if verdict.action == "reject":
            if verdict.edit is not None:
                self._rejected[verdict.edit] = verdict
            return
        self.now = accepted(self.now, verdict.hunks, whole=verdict.whole)
        # An undo in the editor brings a former text back, but not the time before the verdict.
        ids = frozenset(verdict.hunks)
        self._marks = [
            replace(
                one,
                hunks=settled(one.hunks, ids),
                whole="accepted" if verdict.whole and one.whole == "pending" else one.whole,
            )
            for one in self._marks
        ]

    def at(self, text: str | None, *, is_there: bool) -> FileReview:
        """Return the state of the file for another text; the tracked state does not change.

        Args:
            text: Content of the file; None: not a text.
            is_there: Whether the file exists.
        """
        if not is_there and self.now.last is None:
            return self.now
        if text is None or not is_there:
            return replace(self.now, text=text, hunks=orphaned(self.now.hunks))
        if self.now.text is None:
            return replace(self.now, text=text)
        return self._moved_to(text)

    def _moved_to(self, text: str, edits: TextEdits | None = None) -> FileReview:
        """Follow what others did. Where a text comes back that was there before, changes since then were undone.

        Args:
            text: The text now.
            edits: The edits from the tracked text to it; None: they are computed.
        """
        previous = self.now.text
        if previous is None or text == previous:
            return replace(self.now, text=text)
        moved = edited_by_user(self.now.hunks, previous, text, edits=edits)
        key = _key(text)
        mark = next((one for one in reversed(self._marks) if one.key == key), None)
        if mark is None:
            return replace(self.now, text=text, hunks=moved)
        then = {one.id for one in mark.hunks}
        states: Mapping[str, HunkState] = {one.id: one.state for one in self.now.hunks}
        undone = [
            replace(one, state=_UNDONE[states[one.id]]) for one in moved if one.id not in then
        ]
        hunks = sorted([*mark.hunks, *undone], key=lambda one: (one.start, one.end))
        is_back = mark.whole == "pending" and self.now.whole == "rejected"
        whole = "pending" if is_back else self.now.whole
        return replace(self.now, text=text, hunks=tuple(hunks), whole=whole)

    def _changed(
        self, change: Change, texts: Texts, maker: HunkOrigin | None, edits: TextEdits | None
    ) -> Hunks:
        before, after, hunks = texts.before, texts.after, self.now.hunks
        if before is None or after is None:
            return orphaned(hunks)
        if maker is not None:
            return edited_by_agent(hunks, before, after, maker, edits=edits)
        rejected = self._rejected.pop(change.id, None)
        if rejected is not None:
            text, made = revert_hunks(before, hunks, rejected.hunks)
            if text == after:
                return made
        # A restore may bring a former text back, and what waited in it.
        return self._moved_to(after, edits).hunks

    def _run_hunks(
        self, change: Change, texts: Texts, maker: HunkOrigin | None, edits: TextEdits | None
    ) -> Hunks:
        """Return the hunks of the last run that changed the file; the first change of another run begins anew."""
        last = self.now.maker
        hunks = self.now.run_hunks
        if maker is not None and (last is None or last.run != change.run):
            hunks = ()
        if texts.before is None or texts.after is None:
            return ()
        if hunks and self.now.text is not None:
            hunks = edited_by_user(hunks, self.now.text, texts.before)
        if maker is not None:
            return edited_by_agent(hunks, texts.before, texts.after, maker, edits=edits)
        return edited_by_user(hunks, texts.before, texts.after, edits=edits)

    def _whole(self, change: Change, texts: Texts, edits: TextEdits | None) -> HunkState | None:
        if change.by in {"restore", "reject"}:
            back = change.after is None and self.now.first is None
            back = back or (change.path == self.now.origin and change.after is not None)
            if not back and change.after is not None and texts.after is not None:
                return self._moved_to(texts.after, edits).whole
            return "rejected" if back and self.now.whole is not None else self.now.whole
        if change.op != "modify" or texts.before is None or texts.after is None:
            return "pending"
        return self.now.whole


def accepted(now: FileReview, hunks: Iterable[str], *, whole: bool) -> FileReview:
    """Return a file with some of its hunks accepted."""
    is_whole = whole and now.whole == "pending"
    return replace(
        now,
        hunks=settled(now.hunks, frozenset(hunks)),
        whole="accepted" if is_whole else now.whole,
    )


def base_text(now: FileReview) -> str | None:
    """Return the text with all remaining hunks reverted: the text without the agent's changes."""
    if now.text is None:
        return None
    remaining: list[Hunk] = []
    for one in now.hunks:
        # What the user edited may reach into its neighbours.
        if one.state not in GONE and one.start >= (remaining[-1].end if remaining else 0):
            remaining.append(replace(one, state="pending"))
    return revert_hunks(now.text, tuple(remaining), {one.id for one in remaining})[0]


def _key(text: str) -> tuple[int, int]:
    return len(text), hash(text)
