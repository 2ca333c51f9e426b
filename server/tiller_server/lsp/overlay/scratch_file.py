"""Where the chat file of a session lies, and the way to it: through the editors that have it open, else the disk."""

import hashlib
import os
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.errors import FileMissing, NotText, StaleText
from agent_core.kernel.values import Value
from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tiller_server.lsp.edits.overlays import Overlay
from tiller_server.lsp.methods import CHAT_FILE
from tiller_server.lsp.overlay.git_exclude import keep_out_of_git
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

SPARE: Final = "chats"
"""In the user's own data: where the workspace cannot be written to."""


class Reopened(StaleText):
    """Another document has the file than when it was looked at, or none has."""


class ScratchFileState(Value, frozen=True, kw_only=True):
    """The file as it is now."""

    base: FileText | None
    """None: it is not there."""
    document: tuple[int, int] | None
    """Editor that has the file open, and when it was opened; None: no editor has."""


class ScratchFile:
    """One path for the file. Its edits are nobody's but ours: no model is told of them, and no program waits for them."""

    def __init__(self, path: Path, *, root: Path) -> None:
        """Create the place for a chat file.

        Args:
            path: Absolute.
            root: The folder that must hold it, absolute and real.
        """
        self.path = path
        self.root = root
        self.files = OverlayFiles(DiskFiles((root,), root))

    async def resolve(self) -> None:
        """Follow links on the way to the file.

        Raises:
            WorkspaceError: They lead out of the folder, or the path cannot be one.
        """
        self.path = await self.files.resolve(str(self.path), "write")

    async def read(self) -> ScratchFileState:
        """Read the file.

        Raises:
            WorkspaceError: It is there and cannot be read.
        """
        document = _identity(await self.files.opened.find_to_read(self.path))
        try:
            content = await self.files.read(self.path)
        except FileMissing:
            return ScratchFileState(base=None, document=document)
        if not isinstance(content, FileText):
            message = f"{self.path} is no text; move it away, and the chat begins anew"
            raise NotText(message)
        return ScratchFileState(base=content, document=document)

    async def write(self, text: str, *, seen: ScratchFileState) -> WriteResult:
        """Write the file.

        Args:
            text: New text of the file.
            seen: State of the file from which the text was made.

        Raises:
            Reopened: It was opened or closed since: unsaved text is gone, and no merge may treat that as an edit.
            WorkspaceError: Under the conditions of `Files.write`.
        """
        if seen.base is None:
            await to_thread.run_sync(_prepare, self.root, self.path)

        def check(found: Overlay | None) -> None:
            if _identity(found) != seen.document:
                message = f"{self.path} was opened or closed meanwhile"
                raise Reopened(message)

        with self.files.opened.checking(check):
            written = await self.files.write(self.path, text, base=seen.base)
        buffer = await self.files.opened.find(self.path)
        if buffer is not None:
            # An answer may be one undo step, so the next bit of it need not wait until it would be another.
            buffer.editor.notes_of(buffer.document).ours_at = None
        return written


def scratch_path(root: Path, chosen: str | None) -> Path:
    """Return where the file is to lie in a workspace."""
    return Path(os.path.normpath(root / (chosen or CHAT_FILE)))


def workspace_scratch_file(root: Path, chosen: str | None) -> ScratchFile:
    """Return the place in a workspace, or where else the user wants it."""
    path = scratch_path(root, chosen)
    return ScratchFile(path, root=root if path.is_relative_to(root) else path.parent)


def fallback_scratch_file(root: Path, data: Path) -> ScratchFile:
    """Return the place in the user's own data, for a workspace that cannot be written to."""
    digest = hashlib.sha256(os.fsencode(root), usedforsecurity=False).hexdigest()[:16]
    folder = data / SPARE / f"{root.name}-{digest}"
    return ScratchFile(folder / "chat.md", root=folder)


def _identity(buffer: Overlay | None) -> tuple[int, int] | None:
    return None if buffer is None else (id(buffer.editor), buffer.document.epoch)


def _prepare(root: Path, path: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    keep_out_of_git(path)
