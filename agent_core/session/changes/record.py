"""The record of verified changes of a session, and the files that it knows."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import msgspec
from anyio import Lock
from msgspec.structs import replace

from agent_core.changes import BlobStore, Change, ChangeLog, ChangeSource, FileVersion
from agent_core.changes.history import FileHistories
from agent_core.changes.hunks import FileReview, Texts
from agent_core.changes.values import (
    HunkDecision,
    LineCounts,
    encode_change,
    encode_counts,
    encode_decision,
    keep,
)
from agent_core.events import (
    ChangeCounts,
    ChangesUpdated,
    DocumentChange,
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
    Event,
)
from agent_core.kernel import JsonObject, RunId, ToolCallId
from agent_core.kernel.errors import (
    EditDeferred,
    EditRefused,
    EditUnverified,
    PathRefused,
    StaleText,
    WorkspaceError,
)
from agent_core.kernel.json import as_object
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.session.changes.checkpoints import unrecoverable_note
from agent_core.session.history.entries import (
    CHANGE,
    REVIEW,
    EntryFactory,
    change_entry,
    review_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.transcript.entries import AnyEntry, CustomEntry
from agent_core.workspace import FileBytes, Files, FileText, FileWrite, OnResult, WriteResult
from agent_core.workspace.files.proxy import EditOrigin, FilesProxy, changing
from agent_core.workspace.files.text import sha256_of

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
        self._histories.load(recorded_changes(recorder.transcript.records))
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
            now = await run_in_thread(partial(following.at, text, is_there=is_there))
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


class ChangeOrigin(Value, frozen=True, kw_only=True):
    """Author of file changes."""

    edit: str
    """All that one call changes is one edit."""
    run: RunId | None = None
    call: ToolCallId | None = None
    by: ChangeSource = "tool"
    verdicts: Mapping[Path, HunkDecision] = msgspec.field(default_factory=dict[Path, HunkDecision])
    """The user's rejections that caused the changes, by the path of the file afterwards; empty without rejections."""


class RecordedFiles(FilesProxy):
    """The files of a workspace as one tool call sees them: reads pass, changes are kept, told and counted."""

    def __init__(
        self,
        files: Files,
        record: ChangeRecord,
        *,
        author: ChangeOrigin,
        publish: Callable[[Event], object],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(files)
        self._record = record
        self._author = author
        self._publish = publish
        self._now_ms = now_ms

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write, then keep and tell what became of it before the tool goes on."""
        try:
            with self._changing():
                written = await self._files.write(path, text, base=base)
        except WorkspaceError as error:
            self._refused(path, error)
            raise
        # Whoever is cancelled from here on has changed the file all the same.
        await self._record.shielded(lambda: self._written(written, text, base))
        return written

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several; keep and tell what became of each before it is heard."""

        async def kept(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
            if isinstance(outcome, WorkspaceError):
                self._refused(one.path, outcome)
            else:
                await self._record.shielded(lambda: self._written(outcome, one.text, one.base))
            await on_result(one, outcome)

        with self._changing():
            await self._files.write_all(writes, on_result=kept)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete, then keep and tell that."""
        try:
            with self._changing():
                await self._files.delete(path, base=base)
        except WorkspaceError as error:
            self._refused(path, error)
            raise
        await self._record.shielded(lambda: self._deleted(path, base))

    async def move(self, source: Path, target: Path) -> None:
        """Move, then keep and tell that."""
        found = await self._seen(source)
        try:
            with self._changing():
                await self._files.move(source, target)
        except WorkspaceError as error:
            self._refused(source, error)
            raise
        await self._record.shielded(lambda: self._moved(source, target, found))

    async def found_again(self, path: Path) -> None:
        """Keep and tell that a file is there again which somebody else has just put there, byte for byte."""
        found = await self._files.read(path)
        await self._record.shielded(lambda: self._is_back(path, found))

    def _changing(self) -> AbstractContextManager[None]:
        author = self._author
        return changing(EditOrigin(edit=author.edit, run=author.run, call=author.call))

    async def _seen(self, path: Path) -> FileText | FileBytes | None:
        """Read what is about to be moved; None: it is too large, or the move will say what is wrong."""
        try:
            return await self._files.read(path)
        except WorkspaceError:
            return None

    # ------------------------------------------------------------------ what has happened

    async def _written(self, written: WriteResult, text: str, base: FileText | None) -> None:
        made = written.edited if written.edited is not None else text
        there = written.text if written.text is not None else text
        after = FileText(
            path=written.path,
            text=made,
            source=written.source,
            sha256=written.sha256 if there == made else await _hash_of(made),
            encoding=base.encoding if base else "utf-8",
            bom=base.bom if base else False,
            dirty=not written.saved,
        )
        before = base
        if base is not None and written.before is not None and written.before != base.text:
            sha256 = await _hash_of(written.before)
            before = replace(base, text=written.before, sha256=sha256, source="buffer", dirty=True)
        applied = self._applied(
            DocumentChange(
                path=written.path,
                status="applied",
                saved=written.saved,
                version=written.version,
                sha256=written.sha256,
                why=written.note,
            )
        )
        if before is not None and before.text == made and not written.created:
            _ = self._publish(applied)
            self._record.publish_counts(self._author.run)
            return
        await self._keep(
            self._change(
                written.path,
                before=None if before is None else await self._kept(before),
                after=await keep(after, self._record.contents),
            ),
            Texts(before="" if before is None else before.text, after=made),
            applied,
        )

    async def _deleted(self, path: Path, base: FileText | FileBytes) -> None:
        change = self._change(path, before=await self._kept(base), after=None)
        text = base.text if isinstance(base, FileText) else None
        applied = self._applied(DocumentChange(path=path, status="applied", saved=True))
        await self._keep(change, Texts(before=text, after=""), applied)

    async def _is_back(self, path: Path, found: FileText | FileBytes) -> None:
        change = self._change(path, before=None, after=await keep(found, self._record.contents))
        text = found.text if isinstance(found, FileText) else None
        applied = self._applied(
            DocumentChange(path=path, status="applied", saved=True, sha256=found.sha256)
        )
        await self._keep(change, Texts(before="", after=text), applied)

    async def _moved(self, source: Path, target: Path, found: FileText | FileBytes | None) -> None:
        version = FileVersion(sha256="", content=None, size=0, is_text=False)
        if found is not None:
            version = await keep(found, self._record.contents)
        text = found.text if isinstance(found, FileText) else None
        change = self._change(target, before=version, after=version)
        applied = self._applied(
            DocumentChange(path=target, status="applied", saved=True, sha256=version.sha256 or None)
        )
        await self._keep(
            replace(change, op="move", source=source), Texts(before=text, after=text), applied
        )

    async def _kept(self, found: FileText | FileBytes) -> FileVersion:
        """Keep what a file held, unless that was done when the session changed it last."""
        last = self._record.last(found.path)
        if last is not None and last.sha256 == found.sha256 and last.content is not None:
            is_dirty = isinstance(found, FileText) and found.dirty
            return replace(last, saved=not is_dirty)
        return await keep(found, self._record.contents)

    async def _keep(self, change: Change, texts: Texts, applied: Event) -> None:
        await self._record.record(
            change,
            texts,
            verdict=self._author.verdicts.get(change.path),
            publish=lambda: self._publish(applied),
        )

    def _change(
        self, path: Path, *, before: FileVersion | None, after: FileVersion | None
    ) -> Change:
        op = "modify" if before and after else ("add" if after else "delete")
        return Change(
            id=self._author.edit,
            run=self._author.run,
            call=self._author.call,
            by=self._author.by,
            op=op,
            path=path,
            before=before,
            after=after,
            at_ms=self._now_ms(),
        )

    def _applied(self, document: DocumentChange) -> EditApplied:
        author = self._author
        return EditApplied(
            run=author.run, edit=author.edit, call=author.call, documents=(document,)
        )

    # ------------------------------------------------------------------ what did not happen

    def _refused(self, path: Path, error: WorkspaceError) -> None:
        why = str(error)
        match error:
            case StaleText():
                kind, change = EditConflict, DocumentChange(path=path, status="stale", why=why)
            case EditUnverified():
                kind, change = EditConflict, DocumentChange(path=path, status="unverified", why=why)
            case EditDeferred():
                kind, change = EditProposed, DocumentChange(path=path, status="proposed", why=why)
            case EditRefused() | PathRefused():
                kind, change = EditRejected, DocumentChange(path=path, status="refused", why=why)
            case _:
                kind, change = EditRejected, DocumentChange(path=path, status="failed", why=why)
        author = self._author
        _ = self._publish(
            kind(run=author.run, edit=author.edit, call=author.call, documents=(change,))
        )


async def _hash_of(text: str) -> str:
    return await run_in_thread(lambda: sha256_of(text.encode("utf-8", "surrogatepass")))
