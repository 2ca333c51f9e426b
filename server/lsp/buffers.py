"""Which attached editor has a file open, and how its text stands to the disk."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from anyio import to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing
from agent_core.workspace import FileBytes, Files, FileText
from server.lsp.documents import Document
from server.lsp.editor import Editor

State: TypeAlias = Literal["clean", "ours", "outdated", "dirty"]
"""
`clean`: buffer and disk are the same. `ours`: what differs are edits of ours that are not saved yet.
`outdated`: nothing in the buffer is unsaved, but the disk has changed since. `dirty`: anything else.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A file that is open in an editor."""

    editor: Editor
    document: Document
    disk: FileText | FileBytes | None
    """What lies below it; None when there is nothing that can be read."""
    state: State
    rivals: tuple[str, ...] = ()
    """Names of editors that have other unsaved text of the same file."""


class Buffers:
    """The attached editors."""

    def __init__(self, disk: Files) -> None:
        self._disk = disk
        self._editors: list[Editor] = []

    def attach(self, editor: Editor) -> None:
        """Take an editor in; its documents are the truth for their files from now on."""
        if editor not in self._editors:
            self._editors.append(editor)

    def detach(self, editor: Editor) -> None:
        """Forget an editor."""
        if editor in self._editors:
            self._editors.remove(editor)

    async def find(self, path: Path) -> Buffer | None:
        """Give the buffer that counts for a file: one with unsaved text, else the one touched last.

        Raises:
            WorkspaceError: It is open, but the workspace must not use it.
        """
        if not await self._open(path):
            return None
        disk = await self._content(path)
        # Looked up again, because reading takes time; from here on nothing waits.
        found = [
            Buffer(
                editor=editor, document=document, disk=disk, state=_state(editor, document, disk)
            )
            for editor, document in await self._open(path)
        ]
        return _chosen(found)

    async def _content(self, path: Path) -> FileText | FileBytes | None:
        try:
            return await self._disk.read(path)
        except (FileMissing, AccessRefused):
            return None

    async def _open(self, path: Path) -> list[tuple[Editor, Document]]:
        pairs = [(one, document) for one in self._editors for document in one.mirror.documents()]
        spelt = {document.path for _, document in pairs if document.path is not None}
        same = await to_thread.run_sync(_same_files, path, spelt) if spelt else spelt
        return [
            (editor, now)
            for editor, document in pairs
            if document.path in same
            and editor in self._editors
            and (now := editor.mirror.get(document.uri)) is not None
        ]


def _same_files(path: Path, spelt: Iterable[Path]) -> set[Path]:
    """Give those of some paths that name the file of a real path. Reads the disk."""
    return {one for one in spelt if one == path or _is_same(path, one)}


def _is_same(path: Path, spelt: Path) -> bool:
    try:
        real = os.path.realpath(spelt)
        if real == str(path):
            return True
        # Where upper and lower case are one, only the system can tell.
        return real.casefold() == str(path).casefold() and path.samefile(real)
    except (OSError, ValueError):
        return False


def _state(editor: Editor, document: Document, disk: FileText | FileBytes | None) -> State:
    notes = editor.notes_of(document)
    if isinstance(disk, FileText):
        if disk.text == document.text:
            notes.on_disk = document.sha256
            return "clean"
        if notes.on_disk == document.sha256:
            return "outdated"
    below = None if disk is None else disk.sha256
    return "ours" if (notes.ours, notes.ours_over) == (document.sha256, below) else "dirty"


def _chosen(found: Sequence[Buffer]) -> Buffer | None:
    unsaved = [one for one in found if one.state in {"ours", "dirty"}]
    best = max(unsaved or found, key=lambda one: one.document.touched_at, default=None)
    if best is None:
        return None
    rivals = [one.editor.name for one in unsaved if one.document.text != best.document.text]
    if not rivals:
        return best
    return Buffer(
        editor=best.editor,
        document=best.document,
        disk=best.disk,
        state=best.state,
        rivals=(best.editor.name, *rivals),
    )
