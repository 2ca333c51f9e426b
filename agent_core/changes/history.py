"""The verified changes of a session in order, and the history of each file."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.changes.hunks import FileReview, HunkTracker, Texts
from agent_core.changes.values import (
    BlobStore,
    Change,
    ChangeSource,
    FileVersion,
    HunkDecision,
    LineCounts,
    counts_in,
    decode_change,
    decode_decision,
    stored_text,
)
from agent_core.kernel import JsonObject, RunId
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value


class ChangeLog:
    """All changes of a session, on whatever branch of the conversation they were made."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._all: list[Change] = []
        self._paths: dict[Path, list[Change]] = {}
        for change in changes:
            self.add(change)

    def add(self, change: Change) -> None:
        """Append a verified change."""
        self._all.append(change)
        for path in {change.path, change.source or change.path}:
            self._paths.setdefault(path, []).append(change)

    @property
    def all(self) -> Sequence[Change]:
        """All of them, oldest first."""
        return tuple(self._all)

    def __len__(self) -> int:
        """Count them."""
        return len(self._all)

    def at(self, n: int) -> Change:
        """Return the one behind the first `n`."""
        return self._all[n]

    def of(self, path: Path) -> Sequence[Change]:
        """Return those of the file at a path, moves to it and away from it included, oldest first."""
        return tuple(self._paths.get(path, ()))

    def source_of(self, edit: str) -> ChangeSource:
        """Return who made an edit; "tool" for one that is not in the log."""
        found = next((one for one in reversed(self._all) if one.id == edit), None)
        return "tool" if found is None else found.by

    def since(self, n: int) -> Sequence[Change]:
        """Return those behind the first `n`."""
        return tuple(self._all[max(0, n) :])


FileHistoryEntry: TypeAlias = tuple[bool, JsonObject]
"""Entry of the session file: (True, change) or (False, verdict)."""


class FileHistory(Struct, kw_only=True):
    """History of one file: changes by their number, and verdicts."""

    items: list[int | HunkDecision] = msgspec.field(default_factory=list)
    tracker: HunkTracker | None = None
    replayed: int = 0
    """How many items the following has taken in."""
    counted: LineCounts = msgspec.field(default_factory=LineCounts)
    """Pending line counts of the file, as last published."""


class FileHistories:
    """All of them; a file that moves takes its story along."""

    def __init__(self, contents: BlobStore) -> None:
        """Begin with none.

        Args:
            contents: Where what files held is kept; read when it is needed.
        """
        self.log = ChangeLog()
        self._contents = contents
        self._by_path: dict[Path, FileHistory] = {}
        self._all: list[FileHistory] = []

    @property
    def all(self) -> Sequence[FileHistory]:
        """All of them, in the order in which files were changed first."""
        return tuple(self._all)

    def of(self, path: Path) -> FileHistory | None:
        """Return that of the file at a path."""
        return self._by_path.get(path)

    def load(self, entries: Iterable[FileHistoryEntry]) -> None:
        """Load the entries of the session file, in order; entries that cannot be decoded are skipped."""
        for is_change, data in entries:
            story = None
            if is_change:
                change = decode_change(data)
                if change is not None and change.ignored:
                    self.log.add(change)
                elif change is not None:
                    story = self.add(change)
            elif (verdict := decode_decision(data)) is not None:
                story = self.judge(verdict)
            if story is not None and (counts := counts_in(data)) is not None:
                story.counted = counts

    def add(self, change: Change) -> FileHistory:
        """Go on with the story of a file, or begin one."""
        story = None if change.source is None else self._by_path.pop(change.source, None)
        story = story or self._by_path.get(change.path)
        if story is None:
            story = FileHistory()
            self._all.append(story)
        story.items.append(len(self.log))
        self.log.add(change)
        self._by_path[change.path] = story
        return story

    def judge(self, verdict: HunkDecision) -> FileHistory | None:
        """Append a verdict to the story of its file and return the story; None: there is no such file."""
        story = self._by_path.get(verdict.path)
        if story is not None:
            story.items.append(verdict)
        return story

    async def replay(
        self, story: FileHistory, texts_by_change: Mapping[int, Texts] | None = None
    ) -> HunkTracker:
        """Follow a story to its end; from its beginning when that was let go.

        Args:
            story: One of these.
            texts_by_change: Texts by the number of their change; others are read.
        """
        tracker = story.tracker
        if tracker is None:
            first = next(one for one in story.items if isinstance(one, int))
            tracker, story.replayed = HunkTracker.of(self.log.at(first)), 0
        story.tracker = tracker
        for item in story.items[story.replayed :]:
            if isinstance(item, HunkDecision):
                tracker.judge(item)
            else:
                change = self.log.at(item)
                texts = (texts_by_change or {}).get(item) or await self.texts(change)
                await run_in_thread(partial(tracker.follow, change, texts, index=item))
            story.replayed += 1
        return tracker

    async def texts(self, change: Change) -> Texts:
        """Read what a file held before and after a change."""
        return Texts(before=await self._text(change.before), after=await self._text(change.after))

    def trim(self, limit_chars: int, *, but: FileHistory | None = None) -> None:
        """Drop recomputable state beyond `limit_chars` of text, oldest story first; `but` keeps its state."""
        held = 0
        for story in reversed(self._all):
            held += 0 if story.tracker is None else len(story.tracker.now.text or "")
            if held > limit_chars and story is not but:
                story.tracker = None

    async def _text(self, version: FileVersion | None) -> str | None:
        if version is None:
            return ""
        return await stored_text(version, self._contents)


class ChangeSet(Value, frozen=True, kw_only=True):
    """Files with their hunks."""

    id: str
    """Of the run, the checkpoint or the session."""
    base: str
    """The checkpoint before it; the id again where there is none."""
    files: tuple[FileReview, ...]


class ChangeRange(Value, frozen=True, kw_only=True):
    """Which changes are meant, by their numbers."""

    id: str
    base: str
    first: int = 0
    run: RunId | None = None
    """Only those of this run."""

    def has(self, run: RunId | None, index: int) -> bool:
        """Return whether a change belongs to it."""
        return index >= self.first and (self.run is None or run == self.run)


def change_set(
    extent: ChangeRange, files: Iterable[FileReview], changes: Sequence[Change]
) -> ChangeSet:
    """Choose what belongs to an extent, the files in the order in which it changed them.

    A hunk belongs to the change that made it what it is: of lines that were edited again, to the last one.
    """
    chosen = [
        (own[0], _of(extent, file, changes, own)) for file in files if (own := _own(extent, file))
    ]
    chosen.sort(key=lambda one: one[0])
    # A file that came and went again has nothing to show.
    shown = tuple(file for _, file in chosen if file.first is not None or file.last is not None)
    return ChangeSet(id=extent.id, base=extent.base, files=shown)


def _own(extent: ChangeRange, file: FileReview) -> list[int]:
    return [index for run, index in file.runs if extent.has(run, index)]


def _of(
    extent: ChangeRange, file: FileReview, changes: Sequence[Change], own: Sequence[int]
) -> FileReview:
    first, last = changes[own[0]], changes[own[-1]]
    hunks = tuple(one for one in file.hunks if extent.has(one.maker.run, one.maker.index))
    is_whole = file.maker is not None and extent.has(file.maker.run, file.maker.index)
    origin = None if first.before is None else (first.source or first.path)
    return replace(
        file,
        origin=origin if own[0] != file.runs[0][1] else file.origin,
        first=first.before,
        last=last.after,
        hunks=hunks,
        whole=file.whole if is_whole else None,
    )
