"""The record of what a session did to files: in its file first, then counted, then told."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from anyio import Lock, to_thread

from agent_core.changes import BlobStore, Change, ChangeLog, FileVersion
from agent_core.changes.codec import encode_change
from agent_core.changes.decisions import HunkDecision, encode_decision
from agent_core.changes.history.file_histories import FileHistories
from agent_core.changes.history.hunk_tracker import FileReview, Texts
from agent_core.changes.line_counts import LineCounts, encode_counts
from agent_core.events import ChangeCounts, ChangesUpdated, Event
from agent_core.kernel import JsonObject, RunId
from agent_core.kernel.json import as_object
from agent_core.session.changes.checkpoints.messages import unrecoverable_note
from agent_core.session.history.entries import (
    CHANGE,
    REVIEW,
    EntryFactory,
    change_entry,
    review_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.transcript.entries import AnyEntry, CustomEntry

HELD_CHARS = 4_194_304
"""How much text of changed files is held between two looks at them; the rest is read again."""
IDLE_CHARS = 65_536
"""The same, once a run is over."""


class ChangeRecord:
    """Keeps changes and verdicts, and knows what of them waits for the user's word. The only writer of both."""

    def __init__(
        self,
        recorder: Recorder,
        contents: BlobStore,
        *,
        publish: Callable[[Event], object],
        current_run: Callable[[], RunId | None],
    ) -> None:
        """Read the changes in the session's file; contents are read when they are needed.

        Args:
            recorder: Writes entries.
            contents: The store of older file contents.
            publish: Publishes an event.
            current_run: Returns the active run: published events belong to that run only.
        """
        self.contents = contents
        self.before_change: Callable[[RunId | None], Awaitable[None]] = _nothing
        """Awaited before each change is kept, with its run."""
        self._recorder = recorder
        self._publish = publish
        self._current_run = current_run
        self._histories = FileHistories(contents)
        self._histories.load(recorded_changes(recorder.transcript.entries))
        self._turn = Lock()
        self._incomplete_notes: list[tuple[RunId, str]] = []
        """Each sentence once, with the first run that it was said of."""

    @property
    def log(self) -> ChangeLog:
        """Every change, in its order."""
        return self._histories.log

    @property
    def counts(self) -> ChangeCounts:
        """Counts of all changes of the session that wait for the user's decision."""
        total = LineCounts()
        for story in self._histories.all:
            total = total.plus(story.counted)
        return _counts(total)

    async def shielded(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step to completion even if the caller is cancelled: it records changes that have happened."""
        await self._recorder.background.shielded(step)

    async def record(
        self,
        change: Change,
        texts: Texts | None = None,
        *,
        verdict: HunkDecision | None = None,
        publish: Callable[[], object] = lambda: None,
    ) -> None:
        """Store a change that has happened, even if the caller is cancelled.

        Args:
            change: Verified.
            texts: The texts of the file; None: they are read from the stored contents.
            verdict: The user's rejection that caused the change; None: there was none.
            publish: Publishes the events that are due between the entry and the counts.
        """
        if change.ignored:
            await self.shielded(partial(self._record_ignored, change))
            return
        file_texts = texts or await self._histories.texts(change)
        await self.shielded(partial(self._record, change, file_texts, verdict, publish))

    async def judge(self, verdict: HunkDecision) -> None:
        """Keep a verdict that needs no change of the file."""
        await self.shielded(partial(self._judge, verdict))

    async def files(self) -> tuple[FileReview, ...]:
        """Return all files that were changed, as the last change left them."""
        async with self._turn:
            return tuple(
                [(await self._histories.replay(story)).now for story in self._histories.all]
            )

    async def at(self, path: Path, text: str | None, *, is_there: bool) -> FileReview | None:
        """Return the changes of a file for its present text; update the pending counts, publish them if they differ.

        Args:
            path: The present path of the file.
            text: The present text; None: the content is not text.
            is_there: Whether the file exists.

        Returns:
            None: The session never changed it.
        """
        async with self._turn:
            story = self._histories.of(path)
            if story is None:
                return None
            following = await self._histories.replay(story)
            now = await to_thread.run_sync(partial(following.at, text, is_there=is_there))
            before, story.counted = story.counted, now.pending()
        if story.counted != before:
            self.publish_counts(None)
        return now

    def last(self, path: Path) -> FileVersion | None:
        """Return what the file at a path held after its last change; None: nothing, or it was never changed."""
        changes = self.log.of(path)
        return changes[-1].after if changes and changes[-1].path == path else None

    def touches(self, path: Path, run: RunId) -> bool:
        """Return whether a run has changed the file at a path."""
        return any(one.run == run for one in self.log.of(path))

    def lost(self, run: RunId | None, root: Path) -> str | None:
        """Name what a run, or the session, changed and no restore brings back; None: nothing of the kind.

        Args:
            run: None: all of the session.
            root: Names are relative to it.
        """
        own = [one for one in self.log.all if run is None or one.run == run]
        unseen = [
            text for noted_run, text in self._incomplete_notes if run is None or noted_run == run
        ]
        notes = [unrecoverable_note(own, root), *dict.fromkeys(unseen)]
        return " ".join(one for one in notes if one) or None

    def note_incomplete(self, run: RunId, text: str) -> None:
        """Remember what could not be seen of a command of a run, until the process ends."""
        if all(text != noted for _, noted in self._incomplete_notes):
            self._incomplete_notes.append((run, text))

    async def counts_of(self, run: RunId) -> ChangeCounts:
        """Count what a run changed and still stands."""
        numbers = {at for at, one in enumerate(self.log.all) if one.run == run}
        total = LineCounts()
        async with self._turn:
            for story in self._histories.all:
                if not numbers.isdisjoint(one for one in story.items if isinstance(one, int)):
                    total = total.plus((await self._histories.replay(story)).now.of_run(run))
        return _counts(total)

    def settle(self) -> None:
        """Hold less, now that a run is over."""
        self._histories.trim(IDLE_CHARS)

    # ------------------------------------------------------------------ keeping

    async def _record(
        self,
        change: Change,
        texts: Texts,
        verdict: HunkDecision | None,
        publish: Callable[[], object],
    ) -> None:
        async with self._turn:
            await self.before_change(change.run)
            drafts: list[EntryFactory] = []
            if verdict is not None and self._histories.judge(verdict) is not None:
                drafts.append(review_entry(encode_decision(verdict)))
            story = self._histories.add(change)
            following = await self._histories.replay(story, {len(self.log) - 1: texts})
            story.counted = following.now.pending()
            counts = encode_counts(story.counted)
            drafts.append(change_entry({**encode_change(change), "counts": counts}))
            _ = await self._recorder.keep(*drafts)
            self._histories.trim(HELD_CHARS, but=story)
        _ = publish()
        self.publish_counts(change.run)

    async def _record_ignored(self, change: Change) -> None:
        """Keep a deletion of what git ignores: it can be named, and there is nothing to review."""
        async with self._turn:
            await self.before_change(change.run)
            self.log.add(change)
            _ = await self._recorder.keep(change_entry(encode_change(change)))

    async def _judge(self, verdict: HunkDecision) -> None:
        async with self._turn:
            story = self._histories.judge(verdict)
            if story is None:
                return
            story.counted = (await self._histories.replay(story)).now.pending()
            data = {**encode_decision(verdict), "counts": encode_counts(story.counted)}
            _ = await self._recorder.keep(review_entry(data))
        self.publish_counts(None)

    def publish_counts(self, run: RunId | None) -> None:
        """Publish the counts of changes that wait for review."""
        counts = self.counts
        _ = self._publish(
            ChangesUpdated(
                # Nothing of a run follows its end.
                run=run if run == self._current_run() else None,
                files=counts.files,
                additions=counts.additions,
                deletions=counts.deletions,
                unreviewed=counts.unreviewed,
            )
        )


def recorded_changes(entries: Iterable[AnyEntry]) -> Iterator[tuple[bool, JsonObject]]:
    """Find what a session's file says of changes and verdicts, on whatever branch."""
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.custom_type in {CHANGE, REVIEW}:
            yield entry.custom_type == CHANGE, as_object(entry.data)


def _counts(counts: LineCounts) -> ChangeCounts:
    return ChangeCounts(
        files=counts.files,
        additions=counts.additions,
        deletions=counts.deletions,
        unreviewed=counts.unreviewed,
    )


async def _nothing(run: RunId | None) -> None:
    _ = run
