"""Files seen through something that only changes of them have to pass."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

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
