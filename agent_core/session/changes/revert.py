"""Reverts of changes, by hunk, file and run, and of proposals."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from agent_core.changes import BlobStore
from agent_core.changes.hunks import FileReview, revert_hunks
from agent_core.changes.ports import ByteFiles
from agent_core.changes.revert import RevertConflict
from agent_core.changes.values import HunkDecision, stored_bytes
from agent_core.kernel.errors import EditConflicted, FileMissing, StaleText, WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.file_reverter import FileReverter, write_together
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.context import SessionServices, WorkspaceContext
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.workspace import FileBytes, FileText, FileWrite, WriteResult
from agent_core.workspace.files.text import encode_text

TRIES: Final = 3
"""How often it is tried again when somebody changes the file meanwhile."""

FileLookup = Callable[[Path], Awaitable[FileText | FileBytes | None]]
Rejection: TypeAlias = tuple[FileReview, HunkDecision]
"""The present file, and the rejection to revert in it."""


class Reverter:
    """Writes files without rejected changes. Text that the user has typed stays."""

    def __init__(
        self,
        files: Callable[[ChangeOrigin], RecordedFiles],
        *,
        at: Callable[[Path, str | None], Awaitable[FileReview | None]],
        new_id: Callable[[], str],
        raw: Callable[[], ByteFiles | None],
        contents: BlobStore,
    ) -> None:
        """Create the writer.

        Args:
            files: Returns the files of the workspace for an author; their changes are recorded and published.
            at: Returns the changes of a file for a present text.
            new_id: Creates the ids of the edits.
            raw: Returns the writer of bytes; None: only UTF-8 text can be written back.
            contents: The store of older versions.
        """
        self._raw = raw
        self._contents = contents
        self._files = files
        self._at = at
        self._new_id = new_id

    async def revert_all(
        self, rejections: Sequence[Rejection], look: FileLookup
    ) -> Sequence[str | None]:
        """Revert hunks of several files, each once: open documents in one edit if possible, others as `take` does."""
        edit = self._new_id()
        open_texts = [await self._open_text(now, verdict, look) for now, verdict in rejections]
        writes = [write for write in open_texts if write is not None]
        ends: Mapping[Path, WorkspaceError | None] = {}
        if len(writes) > 1:
            verdicts = {now.path: replace(verdict, edit=edit) for now, verdict in rejections}
            files = self._files(ChangeOrigin(edit=edit, by="reject", verdicts=verdicts))
            ends = await write_together(files, writes, [])
        troubles: list[str | None] = []
        for now, verdict in rejections:
            end = ends.get(now.path)
            if now.path not in ends or isinstance(end, StaleText):
                troubles.append(await self.revert(now, verdict, look))
            else:
                troubles.append(None if end is None else str(end))
        return troubles

    async def _open_text(
        self, now: FileReview, verdict: HunkDecision, look: FileLookup
    ) -> FileWrite | None:
        """Return the write that takes hunks out of an open document; None: it is none, or that is not all."""
        found = await look(now.path)
        if not isinstance(found, FileText) or found.source != "buffer" or found.text != now.text:
            return None
        if verdict.whole or not verdict.hunks:
            return None
        text, _ = revert_hunks(found.text, now.hunks, verdict.hunks)
        return FileWrite(path=now.path, text=text, base=found)

    async def revert(self, now: FileReview, verdict: HunkDecision, look: FileLookup) -> str | None:
        """Revert hunks of a file, or its creation, move or deletion; return why that could not be done, or None."""
        verdict = replace(verdict, edit=self._new_id())
        trouble: str | None = None
        for _ in range(TRIES):
            found = await look(now.path)
            try:
                return await self._taken(now, verdict, found)
            except StaleText as error:
                trouble = str(error)
            except WorkspaceError as error:
                return str(error)
            again = await look(now.path)
            moved = await self._at(now.path, again.text if isinstance(again, FileText) else None)
            waiting = {one.id for one in moved.hunks if one.is_pending} if moved else set[str]()
            if moved is None or not waiting.issuperset(verdict.hunks):
                return trouble
            now = moved
        return trouble

    async def _taken(
        self, now: FileReview, verdict: HunkDecision, found: FileText | FileBytes | None
    ) -> str | None:
        assert verdict.edit is not None  # noqa: S101 - given in `take`
        verdicts = dict.fromkeys((now.path, now.origin or now.path), verdict)
        files = self._files(ChangeOrigin(edit=verdict.edit, by="reject", verdicts=verdicts))
        if found is None:
            target = await self._deleted(now, verdict)
            if isinstance(target, RevertConflict):
                return target.why
            reverter = FileReverter(
                files,
                self._raw(),
                self._contents,
                recorded=lambda path, _before, _after: files.found_again(path),
            )
            await reverter.put(now.origin or now.path, target, None)
            return None
        if isinstance(found, FileText) and now.text is not None and found.text != now.text:
            message = f"{now.path} has changed meanwhile"
            raise StaleText(message)
        if not isinstance(found, FileText) or now.text is None:
            if verdict.whole and not verdict.hunks and now.op == "move" and now.origin is not None:
                await files.move(now.path, now.origin)
                return None
            return f"{now.path} is no text that could be taken back piece by piece"
        text, _ = revert_hunks(now.text, now.hunks, verdict.hunks)
        if verdict.whole and now.op == "add" and not text:
            await files.delete(now.path, base=found)
            return None
        if verdict.hunks:
            _ = await files.write(now.path, text, base=found)
        if verdict.whole and now.op == "move" and now.origin is not None:
            await files.move(now.path, now.origin)
        return None

    async def _deleted(
        self, now: FileReview, verdict: HunkDecision
    ) -> str | bytes | RevertConflict:
        """Return what a file is to hold that the agent deleted."""
        first = now.first
        if now.op != "delete" or first is None:
            return RevertConflict(f"{now.path} is not there any more")
        text = None if now.text is None else revert_hunks(now.text, now.hunks, verdict.hunks)[0]
        target: str | bytes | None = text
        if not first.is_text or first.encoding != "utf-8" or first.bom:
            target = None if self._raw() is None else await stored_bytes(first, self._contents)
            if target is not None and first.is_text and text is not None:
                target = encode_text(text, encoding=first.encoding, bom=first.bom)
        lost = f"{now.path} is not there any more, and what it held was not kept"
        return RevertConflict(lost) if target is None else target


CUSTOM_TYPE: Final = "tiller.proposal"


class ApplyResult(Value, frozen=True, kw_only=True):
    """Result of applying an edit again."""

    status: Literal["applied", "nothing", "conflict"]
    """`nothing`: everything that the edit brings was there already. `conflict`: nothing was written."""
    written: WriteResult | None = None
    why: str | None = None
    """Reason for the conflict; None without one."""


class ProposalApplier:
    """Applies edits that could not be applied when the agent made them."""

    def __init__(
        self,
        services: SessionServices,
        *,
        workspace: WorkspaceContext,
        changes: ChangeRecord,
        deferred: DeferredMessages,
    ) -> None:
        self._services = services
        self._workspace = workspace
        self._changes = changes
        self._deferred = deferred

    async def apply(self, path: Path, *, before: str, after: str) -> ApplyResult:
        """Bring the change from one text to another into what a file is now; the model is told with the next prompt.

        Raises:
            WorkspaceError: The file cannot be written; it is as it was.
        """
        from agent_core.workspace.diff.conflict_message import conflict_message  # noqa: PLC0415 - at first use
        from agent_core.workspace.diff.merge import merge  # noqa: PLC0415 - at first use

        workspace = self._workspace.workspace
        path = await workspace.files.resolve(str(path), "write")
        try:
            found = await workspace.files.read(path)
        except FileMissing:
            return ApplyResult(status="conflict", why="the file is not there any more")
        if not isinstance(found, FileText):
            return ApplyResult(status="conflict", why="the file is no text any more")
        merged = await run_in_thread(merge, before, after, found.text)
        if merged.conflicts:
            conflict_lines = conflict_message(merged.conflicts)
            return ApplyResult(
                status="conflict", why=f"the same lines were changed since:\n{conflict_lines}"
            )
        if merged.text == found.text:
            return ApplyResult(status="nothing")
        try:
            written = await self._files(path).write(path, merged.text, base=found)
        except EditConflicted as error:
            return ApplyResult(status="conflict", why=str(error))
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=f"The user has applied your edit of {path} that was not applied."),),
            display=False,
            details={"path": str(path)},
            at_ms=self._services.clock.now_ms(),
        )
        await self._deferred.accept(message, flush_at="prompt")
        return ApplyResult(status="applied", written=written)

    def _files(self, path: Path) -> RecordedFiles:
        """Return the files for this one edit; a protected one was agreed to when the agent made it, and is again now."""
        from agent_core.session.permissions.guarded_files import GuardedFiles  # noqa: PLC0415 - at first use

        workspace = self._workspace
        guarded = GuardedFiles(
            workspace.workspace.files,
            situation=lambda: workspace.permissions.snapshot(tuple(workspace.workspace.roots)),
            approved=lambda: (path,),
            secrets=workspace.secrets,
        )
        return RecordedFiles(
            guarded,
            self._changes,
            author=ChangeOrigin(edit=self._services.new_id()),
            publish=self._services.publish,
            now_ms=self._services.clock.now_ms,
        )
