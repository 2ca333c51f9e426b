"""Edits of documents that are open in an editor: landed, saved where that is ours to do, and remembered until they are."""

from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.errors import EditDeferred, WorkspaceError
from agent_core.kernel.threads import uncancelled
from agent_core.workspace import Files, FileText, WriteResult
from agent_core.workspace.files.proxy import edit_origin
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.edits.batch import BatchMember
from tiller_server.lsp.edits.overlays import Overlay, Overlays
from tiller_server.lsp.edits.preconditions import (
    check_current,
    check_merges,
    rebase_base,
    with_note,
)
from tiller_server.lsp.edits.proposals import Proposals
from tiller_server.lsp.edits.rebase import AppliedEdit, Rebase
from tiller_server.lsp.edits.undo_tracker import UndoTracker
from tiller_server.lsp.edits.write_report import describe_write

UNSAVED: Final = "The edit is unsaved in the editor; programs still read the old file."
DIRTY: Final = "Unsaved user edits present: the file was not saved for the user; programs still read the old file."
NEW: Final = "The file is only in the editor, unsaved; programs do not see it yet."
NEWER_ON_DISK: Final = (
    "The file was written to the disk; the editor has it open with older text and must reload it."
)


class DocumentWriter:
    """Edits of open documents by one session."""

    def __init__(self, disk: Files, buffers: Overlays) -> None:
        self._disk = disk
        self._buffers = buffers
        self._edited: dict[Path, None] = {}
        self.clean_to_disk = False
        """The user wants documents without unsaved text to be edited on the disk, in all editors of the session."""
        self.undo_tracker: Final = UndoTracker(self._is_on_disk)
        """The edits that are in open documents, and what their users make of them."""
        self.proposals: Final = Proposals()
        """Edits that no editor could apply."""

    async def write(
        self, path: Path, text: str, *, base: FileText | None, member: BatchMember | None = None
    ) -> WriteResult | None:
        """Write a whole text to an open document; None: no editor has it open, and nothing was done.

        Args:
            path: The file.
            text: New text of the document.
            base: File as it was read.
            member: Seat in an edit of several documents; None: the document is edited alone.

        Raises:
            WorkspaceError: As `Files.write` does.
        """
        while (seen := await self._buffers.find(path)) is not None:
            async with seen.editor.lock(path):
                buffer = await self._quiet(path, seen, base)
                # Closed, or better known to another editor: look again whose turn it is.
                if buffer is None or buffer.editor is not seen.editor:
                    continue
                if (
                    written := await self._write_open(path, text, base, buffer, member)
                ) is not None:
                    return written
        return None

    async def unsaved(self) -> tuple[Path, ...]:
        """Return the files that were edited here and are not on the disk as their editor has them."""
        for path in tuple(self._edited):
            buffer = await self._buffers.find(path)
            if buffer is None or buffer.state in {"clean", "outdated"}:
                self._edited.pop(path, None)
        return tuple(self._edited)

    async def save(self, *, reason: str) -> None:
        """Have editors save what was edited here, where all that is unsaved is ours."""
        for path in await self.unsaved():
            buffer = await self._buffers.find(path)
            if buffer is not None and buffer.state == "ours" and buffer.editor.capabilities.saves:
                _ = await buffer.editor.requests.save(buffer.document, reason=reason)

    def moved(self, source: Path, target: Path) -> None:
        """Record that a file has another name."""
        if source in self._edited:
            del self._edited[source]
            self._edited[target] = None

    def gone(self, path: Path) -> None:
        """Record that a file was deleted."""
        self._edited.pop(path, None)

    async def _quiet(self, path: Path, seen: Overlay, base: FileText | None) -> Overlay | None:
        """Wait for a pause in the typing, unless that is in vain; give the buffer as it is then."""
        check_merges(path, base, seen)
        return await self._after_pause(path, seen)

    async def _after_pause(self, path: Path, seen: Overlay) -> Overlay | None:
        await seen.editor.wait_for_typing_pause(seen.document)
        return await self._buffers.find(path)

    async def _write_open(
        self,
        path: Path,
        text: str,
        base: FileText | None,
        buffer: Overlay,
        member: BatchMember | None,
    ) -> WriteResult | None:
        """Write to an open document; None: it is no longer to be edited here, and nothing was done."""
        checked_base = check_merges(path, base, buffer)
        _ = await self._disk.resolve(str(path), "write")
        able = buffer.editor.capabilities
        by_choice = buffer.state == "clean" and (able.prefers_disk or self.clean_to_disk)
        if buffer.state == "outdated" or by_choice or not able.applies_edits:
            check_current(path, checked_base, buffer)
            return await self._write_below(path, text, checked_base, buffer)
        with self.undo_tracker.ours(buffer.editor, buffer.document):
            return await self._edit(path, text, checked_base, buffer, member)

    async def _write_below(
        self, path: Path, text: str, base: FileText, buffer: Overlay
    ) -> WriteResult:
        """Write to the disk below a document that has nothing unsaved; else leave it to the user.

        Raises:
            EditDeferred: It has.
        """
        if buffer.state not in {"clean", "outdated"}:
            patch = await self.proposals.keep(path, buffer.document.text, text)
            kept = f" The edit is kept as a patch for the user: {patch}." if patch else ""
            message = (
                f"{path} has unsaved edits in {buffer.editor.name}, which takes no edits from here: nothing was "
                f"written, the edit is not applied.{kept} Save the file first."
            )
            raise EditDeferred(
                message, advice=" Only the user can do that: ask them, then read it again."
            )
        written = await self._disk.write(path, text, base=rebase_base(base, buffer.disk, path))
        return with_note(written, None if buffer.editor.capabilities.reloads else NEWER_ON_DISK)

    async def _edit(
        self, path: Path, text: str, base: FileText, first: Overlay, member: BatchMember | None
    ) -> WriteResult | None:
        ask = first.editor.requests.edit
        if member is not None and member.editor is first.editor:
            ask = member.edit
        rebase = Rebase(
            path,
            text,
            base=base.text,
            send=partial(ask, label=f"Tiller: edit {path.name}"),
            look=lambda: self._after_pause(path, first),
        )
        applied = await rebase.apply(first)
        return (
            None if applied is None else await uncancelled(self._record(path, text, base, applied))
        )

    async def _record(
        self, path: Path, text: str, base: FileText, applied: AppliedEdit
    ) -> WriteResult:
        """Note whose the text is, have it saved if it is ours, and say what is there."""
        buffer, editor = applied.buffer, applied.buffer.editor
        now = editor.mirror.get(applied.after.uri) or applied.after
        if not applied.was_sent:
            written = await self._written(path, buffer, now)
            return await self._compared(text, base, applied, written, now)
        is_ours = buffer.state in {"clean", "ours"} and now.text == applied.edited
        notes = editor.notes_of(now)
        notes.ours_at = now.revision
        notes.ours = now.sha256 if is_ours else None
        notes.ours_over = None if buffer.disk is None else buffer.disk.sha256
        self._edited[path] = None
        why = None
        was_saved = editor.capabilities.saves_edits and await self._is_on_disk(path, now.text)
        if is_ours and editor.capabilities.saves and not was_saved:
            why = await editor.requests.save(now, reason="edit")
        latest = editor.mirror.get(now.uri) or now
        written = await self._written(path, buffer, latest)
        self.undo_tracker.add(
            path,
            editor=editor,
            before=applied.before,
            now=applied.after,
            origin=edit_origin(),
            saved=written.saved,
        )
        written = with_note(written, f"It could not be saved: {why}." if why else None)
        return await self._compared(text, base, applied, written, latest)

    async def _compared(
        self, text: str, base: FileText, applied: AppliedEdit, written: WriteResult, now: Document
    ) -> WriteResult:
        return await to_thread.run_sync(
            partial(describe_write, text, base=base, applied=applied, written=written, now=now)
        )

    async def _written(self, path: Path, buffer: Overlay, now: Document) -> WriteResult:
        """Return what is in the editor now; a look at the disk tells whether it is saved."""
        is_saved = await self._is_on_disk(path, now.text)
        note = None
        if not is_saved:
            note = UNSAVED if buffer.state in {"clean", "ours"} else DIRTY
            note = NEW if buffer.disk is None else note
        return WriteResult(
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
            # In no encoding does a text have fewer bytes than characters; to read a large one takes its time.
            if (await self._disk.stat(path)).size < len(text):
                return False
            below = await self._disk.read(path)
        except WorkspaceError:
            return False
        return isinstance(below, FileText) and below.text == text
