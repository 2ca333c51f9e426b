"""Bytes in memory, read as a file is."""

from anyio import lowlevel


class BytesReader:
    """Reads bytes that are in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self._data)

    async def read(self, limit: int) -> bytes:
        """Return the next bytes, at most so many; empty at the end."""
        await lowlevel.checkpoint()
        piece = self._data[self._place : self._place + limit]
        self._place += len(piece)
        return piece
