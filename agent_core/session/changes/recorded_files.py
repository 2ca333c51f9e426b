"""Changes of a session: every write of a tool is published after it is verified and stored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from agent_core.changes import Change, ChangeSource, FileVersion
from agent_core.changes.decisions import HunkDecision
from agent_core.changes.history.hunk_tracker import Texts
from agent_core.changes.versions import keep
from agent_core.events import (
    DocumentChange,
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
    Event,
)
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import (
    EditDeferred,
    EditRefused,
    EditUnverified,
    PathRefused,
    StaleText,
    WorkspaceError,
)
from agent_core.kernel.values import Value
from agent_core.session.changes.record import ChangeRecord
from agent_core.workspace import (
    FileBytes,
    Files,
    FileText,
    FileWrite,
    OnResult,
    WriteResult,
)
from agent_core.workspace.files.edit_origin import EditOrigin, changing
from agent_core.workspace.files.proxy import FilesProxy
from agent_core.workspace.files.text import sha256_of


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
    return await to_thread.run_sync(lambda: sha256_of(text.encode("utf-8", "surrogatepass")))
