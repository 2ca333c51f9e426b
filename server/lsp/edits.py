"""Files and processes as the agent sees them while editors are attached: open documents first, then the disk."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.errors import (
    DocumentContention,
    EditRefused,
    EditUnverified,
    FileMissing,
    WorkspaceError,
)
from agent_core.kernel.shield import uncancelled
from agent_core.workspace import (
    NO_NEEDS,
    READ_LIMIT_BYTES,
    Access,
    Changes,
    Entry,
    FileBytes,
    FileReader,
    Files,
    FileStat,
    FileText,
    Process,
    Processes,
    Written,
)
from agent_core.workspace.adapters.bytes_reader import BytesReader
from agent_core.workspace.permission import Needs
from server.lsp.buffers import Buffer, Buffers, text_of
from server.lsp.documents import Document
from server.lsp.edit_checks import check, freeze, is_alike, noted, over
from server.lsp.edit_outcome import problem
from server.lsp.editor import Editor
from server.lsp.file_operations import FileOperations

UNSAVED: Final = "The edit is unsaved in the editor; programs still read the old file."
DIRTY: Final = "Unsaved user edits present: the file was not saved for the user; programs still read the old file."
NEW: Final = "The file is only in the editor, unsaved; programs do not see it yet."
NEWER_ON_DISK: Final = (
    "The file was written to the disk; the editor has it open with older text and must reload it."
)
OWN_ENDS: Final = (
    "The editor keeps line ends or a final newline of its own: the rest is as it was written."
)
TYPED: Final = "The text in the editor was changed elsewhere meanwhile, by the user or on saving: read it again."
SHOWN_FILES: Final = 10


class EditorFiles:
    """The disk, with what attached editors have open laid over it."""

    def __init__(self, disk: Files) -> None:
        """Begin without editors.

        Args:
            disk: What lies below; it also says which paths may be used.
        """
        self._disk = disk
        self._buffers = Buffers(disk)
        self.opened: Final = self._buffers
        """What is open, and in which editor."""
        self._operations = FileOperations(disk, self._buffers)
        self._edited: dict[Path, None] = {}
        self.contended: Callable[[Path, DocumentContention], None] = _unseen
        """Called when an edit was refused because two editors have unsaved text of a file."""

    def attach(self, editor: Editor) -> None:
        """Lay an editor's documents over the disk."""
        self._buffers.attach(editor)

    def detach(self, editor: Editor) -> None:
        """Take them away."""
        self._buffers.detach(editor)

    async def resolve(self, path: str, access: Access) -> Path:
        """Find the real path that a model means."""
        return await self._disk.resolve(path, access)

    async def stat(self, path: Path) -> FileStat:
        """Say what a path is, also when it is only in an editor."""
        try:
            return await self._disk.stat(path)
        except FileMissing:
            if (buffer := await self._buffers.find_to_read(path)) is not None:
                size = len(buffer.document.text.encode("utf-8", "surrogatepass"))
                return FileStat(path=path, kind="file", size=size, mtime_ns=0)
            if await self._buffers.names_in(path):
                return FileStat(path=path, kind="folder", size=0, mtime_ns=0)
            raise

    async def list(self, path: Path) -> tuple[Entry, ...]:
        """Give what is in a folder, also what is only in an editor."""
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
        buffer = await self._buffers.find_to_read(path)
        if buffer is None:
            return await self._disk.read(path, limit_bytes=limit_bytes)
        buffer.editor.notes_of(buffer.document).frozen_at = None
        if buffer.state == "outdated" and buffer.disk is not None:
            return buffer.disk
        return text_of(path, buffer)

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file: the text of an open document, else the bytes on the disk."""
        buffer = await self._buffers.find_to_read(path)
        if buffer is None or buffer.state == "outdated":
            async with self._disk.open(path) as reader:
                yield reader
            return
        text = buffer.document.text
        yield BytesReader(await to_thread.run_sync(text.encode, "utf-8", "surrogatepass"))

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Give the open documents at or below a path whose text is not the disk's."""
        found = await self._buffers.unsaved_below(folder)
        return tuple(text_of(path, buffer) for path, buffer in found.items())

    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        """Write a whole text: an open document by an edit of its editor, anything else on the disk."""
        with self._telling(path):
            return await self._write(path, text, base=base)

    async def _write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        while (seen := await self._buffers.find(path)) is not None:
            async with seen.editor.turn(path):
                buffer = await self._quiet(path, seen, base)
                # Closed, or better known to another editor: look again whose turn it is.
                if buffer is not None and buffer.editor is seen.editor:
                    return await self._write_open(path, text, base, buffer)
        written = await self._disk.write(path, text, base=await self._disk_base(path, base))
        return await self._noting_who_opened(written, text)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file: an open one through its editor, or below a document without unsaved text."""
        with self._telling(path):
            await self._operations.delete(path, base=base)
        self._edited.pop(path, None)

    async def move(self, source: Path, target: Path) -> None:
        """Give a file another name: an open one through its editor, or below a document without unsaved text."""
        with self._telling(source):
            await self._operations.move(source, target)
        if source in self._edited:
            del self._edited[source]
            self._edited[target] = None

    def watch(self, path: Path) -> AbstractAsyncContextManager[Changes]:
        """Watch the disk."""
        return self._disk.watch(path)

    async def unsaved(self) -> tuple[Path, ...]:
        """Give the files that were edited here and are not on the disk as their editor has them."""
        for path in tuple(self._edited):
            buffer = await self._buffers.find(path)
            if buffer is None or buffer.state in {"clean", "outdated"}:
                self._edited.pop(path, None)
        return tuple(self._edited)

    async def save_edits(self, *, reason: str) -> None:
        """Have editors save what was edited here, where all that is unsaved is ours."""
        for path in await self.unsaved():
            buffer = await self._buffers.find(path)
            if buffer is not None and buffer.state == "ours" and buffer.editor.abilities.saves:
                _ = await buffer.editor.save(buffer.document, reason=reason)

    @contextmanager
    def _telling(self, path: Path) -> Generator[None]:
        try:
            yield
        except DocumentContention as error:
            self.contended(path, error)
            raise

    # ------------------------------------------------------------------ open documents

    async def _quiet(self, path: Path, seen: Buffer, base: FileText | None) -> Buffer | None:
        """Wait for a pause in the typing, unless that is in vain; give the buffer as it is then."""
        check(path, base, seen)
        await seen.editor.quiet(seen.document)
        return await self._buffers.find(path)

    async def _write_open(
        self, path: Path, text: str, base: FileText | None, buffer: Buffer
    ) -> Written:
        known = check(path, base, buffer)
        _ = await self._disk.resolve(str(path), "write")
        able = buffer.editor.abilities
        by_choice = buffer.state == "clean" and able.prefers_disk
        if buffer.state == "outdated" or by_choice or not able.applies_edits:
            return await self._write_below(path, text, known, buffer)
        if text == buffer.document.text:
            return await self._told(path, buffer, buffer.document)
        # The edit is out from here on: whatever happens to us, find out what came of it.
        return await uncancelled(self._edit(path, text, buffer))

    async def _write_below(self, path: Path, text: str, base: FileText, buffer: Buffer) -> Written:
        """Write to the disk below a document that has nothing unsaved."""
        if buffer.state not in {"clean", "outdated"}:
            message = (
                f"{path} has unsaved edits in {buffer.editor.name}, which takes no edits from here: nothing was "
                "written. Ask the user to save it, then read it again."
            )
            raise EditRefused(message)
        written = await self._disk.write(path, text, base=over(base, buffer.disk, path))
        return noted(written, None if buffer.editor.abilities.reloads else NEWER_ON_DISK)

    async def _edit(self, path: Path, text: str, buffer: Buffer) -> Written:
        editor, before = buffer.editor, buffer.document
        report = await editor.apply(before, text, label=f"Tiller: edit {path.name}")
        now = report.now
        trouble = problem(report.found, report.answer, path=path)
        if trouble is not None:
            freeze(editor, report, trouble)
            raise trouble
        if now is None:
            message = f"{path} was closed in the editor right after it was edited; read it to see what was kept."
            raise EditUnverified(message)
        by_user = now.text != text and not is_alike(report)
        is_ours = buffer.state in {"clean", "ours"} and not by_user
        notes = editor.notes_of(now)
        notes.ours_at = now.revision
        notes.ours = now.sha256 if is_ours else None
        notes.ours_over = None if buffer.disk is None else buffer.disk.sha256
        self._edited[path] = None
        why = None
        if is_ours and editor.abilities.saves:
            why = await editor.save(now, reason="edit")
        latest = editor.mirror.get(now.uri) or now
        written = await self._told(path, buffer, latest)
        written = noted(written, f"It could not be saved: {why}." if why else None)
        if by_user or latest.text != now.text:
            return replace(noted(written, TYPED), changed_by_user=True)
        return noted(written, None if latest.text == text else OWN_ENDS)

    async def _told(self, path: Path, buffer: Buffer, now: Document) -> Written:
        """Say what is in the editor now; a look at the disk tells whether it is saved."""
        is_saved = await self._is_on_disk(path, now.text)
        note = None
        if not is_saved:
            note = UNSAVED if buffer.state in {"clean", "ours"} else DIRTY
            note = NEW if buffer.disk is None else note
        return Written(
            path=path,
            sha256=now.sha256,
            source="buffer",
            saved=is_saved,
            created=False,
            version=now.version,
            note=note,
        )

    async def _is_on_disk(self, path: Path, text: str) -> bool:
        try:
            below = await self._disk.read(path)
        except WorkspaceError:
            return False
        return isinstance(below, FileText) and below.text == text

    # ------------------------------------------------------------------ closed files

    async def _disk_base(self, path: Path, base: FileText | None) -> FileText | None:
        """Turn what was read from a buffer into what the disk must have, for its document is closed now."""
        if base is None or base.source == "disk":
            return base
        return over(base, await self._disk.read(path), path)

    async def _noting_who_opened(self, written: Written, text: str) -> Written:
        buffer = await self._buffers.find(written.path)
        is_behind = buffer is not None and buffer.document.text != text
        return noted(written, NEWER_ON_DISK if is_behind else None)


def _unseen(path: Path, error: DocumentContention) -> None:
    _ = path, error


class EditorProcesses:
    """Processes of the machine, with a look at what is unsaved before each start."""

    def __init__(self, processes: Processes, files: EditorFiles) -> None:
        self._processes = processes
        self._files = files

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Start a process."""
        return await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)

    async def before_start(self) -> str | None:
        """Have unsaved edits saved where that is ours to do; name the files of which the disk is old."""
        told = await self._processes.before_start()
        await self._files.save_edits(reason="command")
        left = await self._files.unsaved()
        if not left:
            return told
        names = ", ".join(str(path) for path in left[:SHOWN_FILES])
        if len(left) > SHOWN_FILES:
            names += f" and {len(left) - SHOWN_FILES} more"
        stale = f"Unsaved in the editor, so programs read the old text from the disk: {names}."
        return f"{told} {stale}" if told else stale
