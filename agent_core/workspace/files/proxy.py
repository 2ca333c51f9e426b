"""Files seen through something that only changes of them have to pass, and whose change is under way."""

from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from agent_core.kernel import RunId, SessionId, ToolCallId
from agent_core.kernel.values import Value
from agent_core.workspace.port import (
    READ_LIMIT_BYTES,
    Changes,
    DirectoryEntry,
    FileBytes,
    FileReader,
    Files,
    FileStat,
    FileText,
    PathAccess,
)


class EditOrigin(Value, frozen=True, kw_only=True):
    """Where an edit comes from."""

    edit: str
    """The id that its events carry."""
    run: RunId | None
    call: ToolCallId | None
    session: SessionId | None = None


# A write is the same wherever it comes from, so its signature does not say; each task sees its own value.
_ORIGIN: Final[ContextVar[EditOrigin | None]] = ContextVar("edit_origin", default=None)


def edit_origin() -> EditOrigin | None:
    """Return the origin of the change that the current task makes; None: no origin is set."""
    return _ORIGIN.get()


@contextmanager
def changing(origin: EditOrigin) -> Generator[None]:
    """Set the origin of the changes that the current task makes in the block."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


class FilesProxy:
    """The reading half of `Files`, passed on unchanged; a subclass defines the writing half."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Pass on."""
        return await self._files.resolve(path, access)

    async def stat(self, path: Path) -> FileStat:
        """Pass on."""
        return await self._files.stat(path)

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Pass on."""
        return await self._files.list(path)

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Pass on."""
        return await self._files.read(path, limit_bytes=limit_bytes)

    def open(self, path: Path) -> AbstractAsyncContextManager[FileReader]:
        """Pass on."""
        return self._files.open(path)

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Pass on."""
        return await self._files.buffers(folder)

    def watch(self, path: Path) -> AbstractAsyncContextManager[Changes]:
        """Pass on."""
        return self._files.watch(path)
