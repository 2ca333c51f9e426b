"""A file on disk that is read in pieces."""

from io import FileIO
from pathlib import Path

from anyio import to_thread

from agent_core.workspace.files.disk.errors import workspace_error


class DiskReader:
    """Reads an open file in threads. The caller that opened the file closes it."""

    def __init__(self, file: FileIO, path: Path, *, size: int) -> None:
        """Wrap an open file.

        Args:
            file: Open for reading, not buffered.
            path: Its name, for messages.
            size: In bytes, when it was opened.
        """
        self._file = file
        self._path = path
        self._size = size

    @property
    def size(self) -> int:
        """In bytes, when it was opened."""
        return self._size

    async def read(self, limit: int) -> bytes:
        """Return the next bytes, at most so many; empty at the end."""
        try:
            return await to_thread.run_sync(self._file.read, max(limit, 0))
        except OSError as error:
            raise workspace_error(error, self._path) from error
