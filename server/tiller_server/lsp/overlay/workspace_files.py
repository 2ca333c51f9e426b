"""Files as the agent sees them while editors are attached: open documents first, then the disk."""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    DocumentContention,
    FileMissing,
    WorkspaceError,
)
from agent_core.workspace import (
    READ_LIMIT_BYTES,
    Changes,
    DirectoryEntry,
    FileBytes,
    FileReader,
    Files,
    FileStat,
    FileText,
    FileWrite,
    OnResult,
    PathAccess,
    WriteResult,
)
from agent_core.workspace.files.bytes_reader import BytesReader
from agent_core.workspace.files.proxy import changing, edit_origin
from agent_core.workspace.files.write_sequence import write_one_by_one
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.edits.batch import BatchMember, EditBatch
from tiller_server.lsp.edits.document_writer import NEWER_ON_DISK, DocumentWriter
from tiller_server.lsp.edits.overlays import Overlays, is_as_on_disk, text_of
from tiller_server.lsp.edits.preconditions import rebase_base, with_note
from tiller_server.lsp.overlay.file_operations import FileOperations
from tiller_server.lsp.overlay.notebooks import check_no_notebook


class OverlayFiles:
    """The disk, with what attached editors have open laid over it."""

    def __init__(self, disk: Files) -> None:
        """Begin without editors.

        Args:
            disk: Files on the disk, below the editors; it also decides which paths may be used.
        """
        self._disk = disk
        self._buffers = Overlays(disk)
        self.opened: Final = self._buffers
        """Open documents, and the editor of each."""
        self._operations = FileOperations(disk, self._buffers)
        self.edits: Final = DocumentWriter(disk, self._buffers)
        """Those of open documents."""
        self.session: SessionId | None = None
        """Whose edits these are, for editors that want to know."""
        self.contended: Callable[[Path, DocumentContention], None] = _unseen
        """Called when an edit was refused because two editors have unsaved text of a file."""

    def attach(self, editor: Editor) -> None:
        """Lay an editor's documents over the disk."""
        self._buffers.attach(editor)
        if editor.capabilities.reads_files or editor.capabilities.writes_files:
            if self._buffers.pulled is None:
                from tiller_server.lsp.overlay.client_files import ClientFiles  # noqa: PLC0415 - at first use

                self._buffers.pulled = ClientFiles(
                    self._disk, self._buffers, session=lambda: self.session
                )
            self._buffers.pulled.attach(editor)

    def detach(self, editor: Editor) -> None:
        """Remove an editor's documents, so that the disk shows again."""
        self._buffers.detach(editor)
        if self._buffers.pulled is not None:
            self._buffers.pulled.detach(editor)

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Find the real path that a model means."""
        return await self._disk.resolve(path, access)

    async def stat(self, path: Path) -> FileStat:
        """Return what a path is, also when it is only in an editor."""
        try:
            return await self._disk.stat(path)
        except FileMissing:
            if (buffer := await self._buffers.find_to_read(path)) is not None:
                size = len(buffer.document.text.encode("utf-8", "surrogatepass"))
                return FileStat(path=path, kind="file", size=size, mtime_ns=0)
            if await self._buffers.names_in(path):
                return FileStat(path=path, kind="folder", size=0, mtime_ns=0)
            raise

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return what is in a folder, also what is only in an editor."""
        unsaved = await self._buffers.names_in(path)
        try:
            there = await self._disk.list(path)
        except FileMissing:
            if not unsaved:
                raise
            there = ()
        names = {entry.name for entry in there}
        return (*there, *(entry for entry in unsaved if entry.name not in names))

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a file: an open document as it is in the editor, whatever its size; else the disk."""
        # Without a limit of its own a reader only wants to know whether the file is open.
        buffer = await self._buffers.find_to_read(path, pulls=limit_bytes > 0)
        if buffer is None:
            return await self._disk.read(path, limit_bytes=limit_bytes)
        buffer.editor.notes_of(buffer.document).frozen_at = None
        if is_as_on_disk(buffer) and buffer.disk is not None:
            return buffer.disk
        return text_of(path, buffer)

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file: the text of an open document, else the bytes on the disk."""
        buffer = await self._buffers.find_to_read(path)
        if buffer is None or is_as_on_disk(buffer):
            async with self._disk.open(path) as reader:
                yield reader
            return
        text = buffer.document.text
        yield BytesReader(await to_thread.run_sync(text.encode, "utf-8", "surrogatepass"))

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Return the open documents at or below a path whose text is not the disk's."""
        found = await self._buffers.unsaved_below(folder)
        return tuple(text_of(path, buffer) for path, buffer in found.items())

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text: an open document by an edit of its editor, anything else on the disk."""
        return await self._write(FileWrite(path=path, text=text, base=base), None)

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several texts: the documents of an editor by one edit, where that allows it; others one after the other."""
        gathered: dict[Editor, dict[Path, FileWrite]] = {}
        for one in writes:
            if (editor := await self._gatherer(one)) is not None:
                _ = gathered.setdefault(editor, {}).setdefault(one.path, one)
        together = [own for own in gathered.items() if len(own[1]) > 1]
        for editor, own in together:
            await self._write_together(editor, tuple(own.values()), on_result)
        done = {id(one) for _, own in together for one in own.values()}
        left = [one for one in writes if id(one) not in done]
        await write_one_by_one(self, left, on_result=on_result)

    async def _gatherer(self, write: FileWrite) -> Editor | None:
        """Return the editor that has a file open and takes edits of several documents."""
        if write.base is None or not any(one.capabilities.gathers for one in self._buffers.editors):
            return None
        try:
            await self._buffers.open_closed(write.path)
            buffer = await self._buffers.find(write.path)
        except WorkspaceError:
            return None  # its own write says why
        return buffer.editor if buffer and buffer.editor.capabilities.gathers else None

    async def _write_together(
        self, editor: Editor, writes: Sequence[FileWrite], on_result: OnResult
    ) -> None:
        batch = EditBatch(editor, members=len(writes))

        async def write(one: FileWrite) -> None:
            outcome: WriteResult | WorkspaceError
            with batch.join() as seat:
                try:
                    outcome = await self._write(one, seat)
                except WorkspaceError as error:
                    outcome = error
            await on_result(one, outcome)

        async with editor.gathering:
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(batch.run)
                    for one in writes:
                        group.start_soon(write, one)
            except ExceptionGroup as failed:
                # Whoever writes several files sees what whoever writes one would.
                raise failed.exceptions[0] from failed

    async def _write(self, write: FileWrite, member: BatchMember | None) -> WriteResult:
        path = write.path
        with self._telling(path):
            await check_no_notebook(path, self._buffers.editors)
            written = await self._write_text(path, write.text, write.base, member)
            if written.created:
                await self._buffers.show(path)
            return written

    async def _write_text(
        self, path: Path, text: str, base: FileText | None, member: BatchMember | None
    ) -> WriteResult:
        if base is not None:
            await self._buffers.open_closed(path)
        edited = await self.edits.write(path, text, base=base, member=member)
        if edited is not None:
            return edited
        if base is None and self._buffers.pulled is not None:
            made = await self._buffers.pulled.create(path, text)
            if made is not None:
                return made
        written = await self._disk.write(path, text, base=await self._disk_base(path, base))
        return await self._noting_who_opened(written, text)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file: an open one through its editor, or below a document without unsaved text."""
        with self._telling(path):
            await check_no_notebook(path, self._buffers.editors)
            await self._operations.delete(path, base=base)
        self.edits.gone(path)

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file: an open one through its editor, or on the disk below a document without unsaved text."""
        with self._telling(source):
            await check_no_notebook(source, self._buffers.editors)
            await self._operations.move(source, target)
        self.edits.moved(source, target)

    def watch(self, path: Path) -> AbstractAsyncContextManager[Changes]:
        """Watch the disk."""
        return self._disk.watch(path)

    @contextmanager
    def _telling(self, path: Path) -> Generator[None]:
        origin = edit_origin()
        whose = origin and replace(origin, session=self.session or origin.session)
        named = changing(whose) if whose else nullcontext()
        try:
            with named:
                yield
        except DocumentContention as error:
            self.contended(path, error)
            raise

    async def _disk_base(self, path: Path, base: FileText | None) -> FileText | None:
        """Turn what was read from a buffer into what the disk must have, for its document is closed now."""
        if base is None or base.source == "disk":
            return base
        return rebase_base(base, await self._disk.read(path), path)

    async def _noting_who_opened(self, written: WriteResult, text: str) -> WriteResult:
        buffer = await self._buffers.find(written.path)
        is_behind = buffer is not None and buffer.document.text != text
        return with_note(written, NEWER_ON_DISK if is_behind else None)


def _unseen(path: Path, error: DocumentContention) -> None:
    _ = path, error
