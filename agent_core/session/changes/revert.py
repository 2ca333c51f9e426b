"""Revert of rejected hunks: the reverse edit, through the editor when it has the file open."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from agent_core.changes import BlobStore, FileVersion
from agent_core.changes.decisions import HunkDecision
from agent_core.changes.history.hunk_tracker import FileReview
from agent_core.changes.history.hunks import revert_hunks
from agent_core.changes.ports.byte_files import ByteFiles
from agent_core.kernel.errors import StaleText, WorkspaceError
from agent_core.kernel.shield import uncancelled
from agent_core.session.changes.recorded_files import ChangeOrigin, RecordedFiles
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
        writes: dict[Path, FileWrite] = {}
        for now, verdict in rejections:
            if (write := await self._open_text(now, verdict, look)) is not None:
                writes[now.path] = write
        ends: dict[Path, WorkspaceError | None] = {}

        async def heard(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
            ends[one.path] = outcome if isinstance(outcome, WorkspaceError) else None

        if len(writes) > 1:
            verdicts = {now.path: replace(verdict, edit=edit) for now, verdict in rejections}
            files = self._files(ChangeOrigin(edit=edit, by="reject", verdicts=verdicts))
            await files.write_all(tuple(writes.values()), on_result=heard)
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
        names = {now.path, now.origin or now.path}
        verdicts = dict.fromkeys(names, verdict)
        files = self._files(ChangeOrigin(edit=verdict.edit, by="reject", verdicts=verdicts))
        if found is None:
            return await self._brought_back(now, verdict, files)
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

    async def _brought_back(
        self, now: FileReview, verdict: HunkDecision, files: RecordedFiles
    ) -> str | None:
        """Write a file again that the agent deleted."""
        first = now.first
        if now.op != "delete" or first is None:
            return f"{now.path} is not there any more"
        if not first.is_text or first.encoding != "utf-8" or first.bom:
            return await self._put_back(now, first, verdict, files)
        if now.text is None:
            return f"{now.path} is not there any more, and what it held was not kept"
        text, _ = revert_hunks(now.text, now.hunks, verdict.hunks)
        _ = await files.write(now.origin or now.path, text, base=None)
        return None

    async def _put_back(
        self, now: FileReview, first: FileVersion, verdict: HunkDecision, files: RecordedFiles
    ) -> str | None:
        """Write a file again whose bytes are not those of its text in UTF-8."""
        raw, path = self._raw(), now.origin or now.path
        data = None if first.content is None else await self._contents.get(first.content)
        if raw is None or data is None:
            return f"{now.path} is not there any more, and what it held was not kept"
        if first.is_text and now.text is not None:
            text, _ = revert_hunks(now.text, now.hunks, verdict.hunks)
            data = encode_text(text, encoding=first.encoding, bom=first.bom)
        await uncancelled(_put_and_tell(raw, path, data, files))
        return None


async def _put_and_tell(raw: ByteFiles, path: Path, data: bytes, files: RecordedFiles) -> None:
    await raw.put_bytes(path, data, base=None)
    await files.found_again(path)
