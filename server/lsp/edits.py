"""Files and processes as the agent sees them while editors are attached: open documents first, then the disk."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    FileMissing,
    StaleText,
    WorkspaceError,
)
from agent_core.kernel.shield import uncancelled
from agent_core.workspace import (
    Access,
    FileBytes,
    Files,
    FileStat,
    FileText,
    Process,
    Processes,
    Written,
)
from server.lsp.buffers import Buffer, Buffers
from server.lsp.documents import Document
from server.lsp.edit_outcome import problem
from server.lsp.editor import Editor, Report

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
        self._edited: dict[Path, None] = {}

    def attach(self, editor: Editor) -> None:
        """Lay an editor's documents over the disk."""
        self._buffers.attach(editor)

    def detach(self, editor: Editor) -> None:
        """Take them away."""
        self._buffers.detach(editor)

    async def editor_of(self, path: Path) -> Editor | None:
        """Give the editor whose text counts for a file; None when nobody has it open."""
        buffer = await self._buffers.find(path)
        return None if buffer is None else buffer.editor

    async def resolve(self, path: str, access: Access) -> Path:
        """Find the real path that a model means."""
        return await self._disk.resolve(path, access)

    async def stat(self, path: Path) -> FileStat:
        """Say what a path is, also when it is only in an editor."""
        try:
            return await self._disk.stat(path)
        except FileMissing:
            buffer = await self._buffers.find(path)
            if buffer is None:
                raise
            size = len(buffer.document.text.encode("utf-8", "surrogatepass"))
            return FileStat(path=path, kind="file", size=size, mtime_ns=0)

    async def read(self, path: Path) -> FileText | FileBytes:
        """Read a file: an open document as it is in the editor, also unsaved; else the disk."""
        buffer = await self._buffers.find(path)
        if buffer is None:
            return await self._disk.read(path)
        document, below = buffer.document, buffer.disk
        buffer.editor.notes_of(document).frozen_at = None
        if buffer.state == "outdated" and below is not None:
            return below
        known = below if isinstance(below, FileText) else None
        return FileText(
            path=path,
            text=document.text,
            source="buffer",
            sha256=document.sha256,
            encoding=known.encoding if known else "utf-8",
            bom=known.bom if known else False,
            version=document.version,
            dirty=buffer.state != "clean",
        )

    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        """Write a whole text: an open document by an edit of its editor, anything else on the disk."""
        while (seen := await self._buffers.find(path)) is not None:
            async with seen.editor.turn(path):
                buffer = await self._quiet(path, seen, base)
                # Closed, or better known to another editor: look again whose turn it is.
                if buffer is not None and buffer.editor is seen.editor:
                    return await self._write_open(path, text, base, buffer)
        written = await self._disk.write(path, text, base=await self._disk_base(path, base))
        return await self._noting_who_opened(written, text)

    async def unsaved(self) -> list[Path]:
        """Give the files that were edited here and are not on the disk as their editor has them."""
        for path in tuple(self._edited):
            buffer = await self._buffers.find(path)
            if buffer is None or buffer.state in {"clean", "outdated"}:
                self._edited.pop(path, None)
        return list(self._edited)

    async def save_edits(self, *, reason: str) -> None:
        """Have editors save what was edited here, where all that is unsaved is ours."""
        for path in await self.unsaved():
            buffer = await self._buffers.find(path)
            if buffer is not None and buffer.state == "ours" and buffer.editor.abilities.saves:
                _ = await buffer.editor.save(buffer.document, reason=reason)

    # ------------------------------------------------------------------ open documents

    async def _quiet(self, path: Path, seen: Buffer, base: FileText | None) -> Buffer | None:
        """Wait for a pause in the typing, unless that is in vain; give the buffer as it is then."""
        _check(path, base, seen)
        await seen.editor.quiet(seen.document)
        return await self._buffers.find(path)

    async def _write_open(
        self, path: Path, text: str, base: FileText | None, buffer: Buffer
    ) -> Written:
        known = _check(path, base, buffer)
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
        written = await self._disk.write(path, text, base=_over(base, buffer.disk, path))
        return _noted(written, None if buffer.editor.abilities.reloads else NEWER_ON_DISK)

    async def _edit(self, path: Path, text: str, buffer: Buffer) -> Written:
        editor, before = buffer.editor, buffer.document
        report = await editor.apply(before, text, label=f"Tiller: edit {path.name}")
        now = report.now
        trouble = problem(report.found, report.answer, path=path)
        if trouble is not None:
            _freeze(editor, report, trouble)
            raise trouble
        if now is None:
            message = f"{path} was closed in the editor right after it was edited; read it to see what was kept."
            raise EditUnverified(message)
        by_user = now.text != text and not _is_alike(report)
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
        written = _noted(written, f"It could not be saved: {why}." if why else None)
        if by_user or latest.text != now.text:
            return replace(_noted(written, TYPED), changed_by_user=True)
        return _noted(written, None if latest.text == text else OWN_ENDS)

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
        return _over(base, await self._disk.read(path), path)

    async def _noting_who_opened(self, written: Written, text: str) -> Written:
        buffer = await self._buffers.find(written.path)
        is_behind = buffer is not None and buffer.document.text != text
        return _noted(written, NEWER_ON_DISK if is_behind else None)


class EditorProcesses:
    """Processes of the machine, with a look at what is unsaved before each start."""

    def __init__(self, processes: Processes, files: EditorFiles) -> None:
        self._processes = processes
        self._files = files

    async def start(self, argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str]) -> Process:
        """Start a process."""
        return await self._processes.start(argv, cwd=cwd, env=env)

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


def _check(path: Path, base: FileText | None, buffer: Buffer) -> FileText:
    """Give the base if the file still is what it was when it was read."""
    document, below = buffer.document, buffer.disk
    if base is None:
        message = (
            f"{path} exists already, it is open in the editor: nothing was written. Read it first."
        )
        raise StaleText(message)
    if buffer.rivals:
        names = " and ".join(buffer.rivals)
        message = (
            f"{path} has different unsaved text in {names} (DocumentContention): nothing was written. "
            "Ask the user to save or discard one of them."
        )
        raise EditRefused(message)
    if buffer.editor.notes_of(document).frozen_at == document.revision:
        message = f"An earlier edit of {path} is not verified and may still come: nothing was written. Read it again first."
        raise EditUnverified(message)
    if buffer.state == "outdated" and isinstance(below, FileText):
        is_current = base.text == below.text
    elif base.source == "buffer":
        is_current = base.sha256 == document.sha256
    else:
        is_current = base.text == document.text
    if not is_current:
        message = (
            f"{path} changed in the editor since it was read: nothing was written. Read it again."
        )
        raise StaleText(message)
    return base


def _over(base: FileText, disk: FileText | FileBytes | None, path: Path) -> FileText:
    """Give what the disk has, if its text is that of the base."""
    if isinstance(disk, FileText) and disk.text == base.text:
        return disk
    message = f"{path} is not on the disk as it was read: nothing was written. Read it again."
    raise StaleText(message)


def _freeze(editor: Editor, report: Report, trouble: Exception) -> None:
    if report.now is not None and isinstance(trouble, EditUnverified):
        editor.notes_of(report.now).frozen_at = report.now.revision


def _is_alike(report: Report) -> bool:
    """Tell whether a text is the wanted one but for line ends."""
    return report.found is not None and report.found.kind == "alike"


def _noted(written: Written, note: str | None) -> Written:
    if note is None:
        return written
    return replace(written, note=f"{written.note} {note}" if written.note else note)
