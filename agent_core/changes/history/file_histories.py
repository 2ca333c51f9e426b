"""History of each file that a session changed, in order, and the resulting state."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.changes.codec import decode_change
from agent_core.changes.decisions import HunkDecision, decode_decision
from agent_core.changes.history.change_log import ChangeLog
from agent_core.changes.history.hunk_tracker import HunkTracker, Texts
from agent_core.changes.line_counts import LineCounts, counts_in
from agent_core.changes.ports.blob_store import BlobStore
from agent_core.changes.values import Change, FileVersion
from agent_core.changes.versions import text_of
from agent_core.kernel import JsonObject

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
                await to_thread.run_sync(partial(tracker.follow, change, texts, index=item))
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
        data = None if version.content is None else await self._contents.get(version.content)
        return None if data is None else await to_thread.run_sync(text_of, version, data)
