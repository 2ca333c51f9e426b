"""The port to where contents of changed files are kept."""

from collections.abc import Collection
from typing import Protocol


class BlobStore(Protocol):
    """Content-addressed store of bytes. Stored content is never altered."""

    async def put(self, data: bytes) -> str:
        """Keep bytes and give their SHA-256 in hex; the same bytes are kept once.

        Raises:
            StorageError: They could not be written.
        """
        ...

    async def get(self, key: str) -> bytes | None:
        """Return what is kept; None: nothing is, or it is damaged."""
        ...

    async def sync(self, keys: Collection[str]) -> None:
        """Make what is kept under some keys survive a power cut; until then a hash tells what did not."""
        ...
