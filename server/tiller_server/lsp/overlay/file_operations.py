"""Deletes and moves files: through the editor that has one open, so that its user sees it and can undo it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.errors import EditRefused, EditUnverified, FileMissing, WorkspaceError
from agent_core.kernel.threads import uncancelled
from agent_core.workspace import FileBytes, Files, FileText
from agent_core.workspace.files.disk.errors import not_moved
from tiller_server.lsp.editors.edit_verification import ApplyResponse
from tiller_server.lsp.edits.overlays import Overlay, Overlays
from tiller_server.lsp.edits.preconditions import check_current, check_settled, rebase_base

NO_OVERWRITE: Final[Mapping[str, object]] = {"overwrite": False, "ignoreIfExists": False}


class FileOperations:
    """Operations on whole files while editors are attached. Unsaved text of a user is never lost."""

    def __init__(self, disk: Files, buffers: Overlays) -> None:
        self._disk = disk
        self._buffers = buffers

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if it still is `base`."""
        while (seen := await self._buffers.find(path)) is not None:
            async with seen.editor.lock(path):
                buffer = await self._buffers.find(path)
                # Closed, or better known to another editor: look again whose turn it is.
                if buffer is not None and buffer.editor is seen.editor:
                    await self._delete_open(path, base, buffer)
                    return
        if isinstance(base, FileText) and base.source == "buffer":
            base = rebase_base(base, await self._disk.read(path), path)
        await self._disk.delete(path, base=base)

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file to a name that is free, also in every editor."""
        if await self._buffers.find(target) is not None:
            raise not_moved(source, target)
        while (seen := await self._buffers.find(source)) is not None:
            async with seen.editor.lock(source):
                buffer = await self._buffers.find(source)
                if buffer is not None and buffer.editor is seen.editor:
                    await self._move_open(source, target, buffer)
                    return
        await self._disk.move(source, target)

    async def _delete_open(self, path: Path, base: FileText | FileBytes, seen: Overlay) -> None:
        check_current(path, base, seen)
        _ = await self._disk.resolve(str(path), "write")
        buffer = await self._without_unsaved_text_of_the_user(path, seen)
        if buffer.editor.capabilities.deletes and await _is_named_by(path, buffer):
            # It is out from here on: whatever happens to us, find out what came of it.
            await uncancelled(self._ask_to_delete(path, buffer))
            return
        await self._disk.delete(path, base=_saved(path, buffer))

    async def _move_open(self, source: Path, target: Path, seen: Overlay) -> None:
        check_settled(source, seen)
        for path in (source, target):
            _ = await self._disk.resolve(str(path), "write")
        buffer = await self._without_unsaved_text_of_the_user(source, seen)
        if await self._is_there(target):
            raise not_moved(source, target)
        if await self._editor_moves(source, target, buffer):
            await uncancelled(self._ask_to_move(source, target, buffer))
            return
        _ = _saved(source, buffer)
        await self._disk.move(source, target)

    async def _editor_moves(self, source: Path, target: Path, buffer: Overlay) -> bool:
        """Return whether a file is moved by its editor, rather than on the disk below it."""
        # Not from older text in an editor: some save a document when they rename it.
        if not buffer.editor.capabilities.renames or buffer.state == "outdated":
            return False
        if not await _is_named_by(source, buffer):
            return False
        # Not every editor makes folders; but only an editor can move what is not saved.
        return buffer.state == "ours" or await self._is_there(target.parent)

    async def _without_unsaved_text_of_the_user(self, path: Path, seen: Overlay) -> Overlay:
        """Have what is ours saved where that can be; refuse where the user would lose something."""
        buffer: Overlay | None = seen
        if seen.state == "ours" and seen.disk is not None and seen.editor.capabilities.saves:
            _ = await seen.editor.requests.save(seen.document, reason="edit")
            buffer = await self._buffers.find(path)
        if buffer is None or buffer.editor is not seen.editor or buffer.state == "dirty":
            message = (
                f"{path} has unsaved text of the user in {seen.editor.name}: nothing was done. "
                "Save or discard it first."
            )
            raise EditRefused(message, advice=" Only the user can do that: ask them.")
        if buffer.disk is None:
            message = f"{path} is only in {seen.editor.name}, unsaved: nothing was done. Save or close it first."
            raise EditRefused(message, advice=" Only the user can do that: ask them.")
        return buffer

    async def _ask_to_delete(self, path: Path, buffer: Overlay) -> None:
        operation = {"kind": "delete", "uri": buffer.document.uri}
        answer = await buffer.editor.requests.operate(
            operation, label=f"Tiller: delete {path.name}"
        )
        if await self._is_there(path):
            raise _not_done("deleted", path, answer)
        await buffer.editor.wait_closed(buffer.document)

    async def _ask_to_move(self, source: Path, target: Path, buffer: Overlay) -> None:
        editor, document = buffer.editor, buffer.document
        operation = {
            "kind": "rename",
            "oldUri": document.uri,
            "newUri": target.as_uri(),
            "options": NO_OVERWRITE,
        }
        answer = await editor.requests.operate(operation, label=f"Tiller: move {source.name}")
        if await self._is_there(source) or not await self._is_there(target):
            raise _not_done("moved", source, answer)
        await editor.wait_closed(document)
        moved = editor.mirror.get(target.as_uri())
        if buffer.state == "ours" and moved is not None and moved.text == document.text:
            notes = editor.notes_of(moved)
            notes.ours, notes.ours_at = moved.sha256, moved.revision
            notes.ours_over = None if buffer.disk is None else buffer.disk.sha256

    async def _is_there(self, path: Path) -> bool:
        try:
            _ = await self._disk.stat(path)
        except FileMissing:
            return False
        return True


async def _is_named_by(path: Path, buffer: Overlay) -> bool:
    """Return whether a document's URI is a name of the file itself: an operation on a link would take the link."""
    spelt = buffer.document.path
    return spelt == path or (
        spelt is not None
        and spelt.name == path.name
        and not await to_thread.run_sync(os.path.islink, spelt)
    )


def _saved(path: Path, buffer: Overlay) -> FileText | FileBytes:
    """Return what the disk has below a document without unsaved text."""
    if buffer.state in {"clean", "outdated"} and buffer.disk is not None:
        return buffer.disk
    message = (
        f"{path} has unsaved edits in {buffer.editor.name}, which takes no operations on files from here: "
        "nothing was done. Save it first."
    )
    raise EditRefused(message, advice=" Only the user can do that: ask them.")


def _not_done(what: str, path: Path, answer: ApplyResponse) -> WorkspaceError:
    """Return why an operation did not come to pass."""
    reason = answer.reason.rstrip(".")
    if answer.applied is None:
        why = reason or "the editor did not answer"
        return EditUnverified(
            f"{path} was not {what} so far: {why}. It may still come: look again."
        )
    if answer.applied:
        return EditRefused(
            f"{path} was not {what}, although the editor said it was. Look what is there."
        )
    why = f" ({reason})" if reason else ""
    return EditRefused(f"{path} was not {what}: the editor refused{why}.")
