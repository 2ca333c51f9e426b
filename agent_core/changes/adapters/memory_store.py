"""Keeps contents of changed files in memory, for sessions that leave nothing behind."""

from collections.abc import Collection
from hashlib import sha256

from anyio import to_thread

from agent_core.kernel.errors import StorageUnavailable

LIMIT_BYTES = 268_435_456


class MemoryBlobStore:
    """Keeps them as long as it lives."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._kept: dict[str, bytes] = {}
        self._room_bytes = limit_bytes

    async def put(self, data: bytes) -> str:
        """Keep bytes; see `BlobStore.put`."""
        key = await to_thread.run_sync(lambda: sha256(data).hexdigest())
        if key not in self._kept:
            if len(data) > self._room_bytes:
                message = "the memory for older versions of files is full; this change is noted without the way back"
                raise StorageUnavailable(message)
            self._room_bytes -= len(data)
            self._kept[key] = data
        return key

    async def get(self, key: str) -> bytes | None:
        """Return what is kept; see `BlobStore.get`."""
        return self._kept.get(key)

    async def sync(self, keys: Collection[str]) -> None:
        """Do nothing: memory survives no power cut."""
        del keys
