"""One file through all that a session and its user did to it: which hunks stand, wait and are gone; pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.changes.decisions import HunkDecision
from agent_core.changes.history.hunks import (
    Hunk,
    HunkOrigin,
    Hunks,
    HunkState,
    edited_by_agent,
    edited_by_user,
    orphaned,
    revert_hunks,
    settled,
)
from agent_core.changes.line_counts import LineCounts, line_count
from agent_core.changes.values import Change, FileVersion, Op
from agent_core.kernel import RunId
from agent_core.kernel.values import Value

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
        is_agent = change.by in {"tool", "process"}
        run_hunks = self._run_hunks(change, texts, maker if is_agent else None)
        is_first = not self.now.runs
        if not is_first and (texts.before is None or self.now.text is None):
            self.now = replace(self.now, hunks=orphaned(self.now.hunks))
        elif not is_first and texts.before is not None:
            self.now = self._moved_to(texts.before)
        if texts.before is not None and texts.before != texts.after:
            mark = _Mark(key=_key(texts.before), hunks=self.now.hunks, whole=self.now.whole)
            self._marks = [*self._marks, mark][-REMEMBERED:]
        made = self._changed(change, texts, maker if is_agent else None)
        self.now = replace(
            self.now,
            path=change.path,
            last=change.after,
            text=texts.after,
            hunks=made,
            run_hunks=run_hunks,
            whole=self._whole(change, texts),
            maker=maker if is_agent else self.now.maker,
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

    def _moved_to(self, text: str) -> FileReview:
        """Follow what others did. Where a text comes back that was there before, changes since then were undone."""
        previous = self.now.text
        if previous is None or text == previous:
            return replace(self.now, text=text)
        moved = edited_by_user(self.now.hunks, previous, text)
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

    def _changed(self, change: Change, texts: Texts, maker: HunkOrigin | None) -> Hunks:
        before, after, hunks = texts.before, texts.after, self.now.hunks
        if before is None or after is None:
            return orphaned(hunks)
        if maker is not None:
            return edited_by_agent(hunks, before, after, maker)
        rejected = self._rejected.pop(change.id, None)
        if rejected is not None:
            text, made = revert_hunks(before, hunks, rejected.hunks)
            if text == after:
                return made
        # A restore may bring a former text back, and what waited in it.
        return self._moved_to(after).hunks

    def _run_hunks(self, change: Change, texts: Texts, maker: HunkOrigin | None) -> Hunks:
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
            return edited_by_agent(hunks, texts.before, texts.after, maker)
        return edited_by_user(hunks, texts.before, texts.after)

    def _whole(self, change: Change, texts: Texts) -> HunkState | None:
        if change.by in {"restore", "reject"}:
            back = change.after is None and self.now.first is None
            back = back or (change.path == self.now.origin and change.after is not None)
            if not back and change.after is not None and texts.after is not None:
                return self._moved_to(texts.after).whole
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
