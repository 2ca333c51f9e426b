"""Stores for the contents of changed files: a folder of the session, or memory."""

import logging
import os
import re
import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from anyio import Lock

from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.threads import run_in_thread

FOLDER_MODE = 0o700
FILE_MODE = 0o600
FOLDER_LIMIT_BYTES = 1_073_741_824
"""Limit of the stored content of one session. Changes beyond it are recorded but cannot be reverted."""
_KEY = re.compile(r"[0-9a-f]{64}")

log = logging.getLogger(__name__)


class FolderBlobStore:
    """Keeps each content once, in a file of its SHA-256's name that only the user can read.

    The folder belongs to one session and is removed with it, so nothing needs to be counted or swept. It is made with
    the first content.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = FOLDER_LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._used_bytes: int | None = None
        # One after another: what is used is counted, and the same bytes are not written twice.
        self._turn = Lock(fast_acquire=True)

    async def put(self, data: bytes) -> str:
        """Keep bytes; see `BlobStore.put`.

        Raises:
            StorageUnavailable: The disk refuses, or the session keeps too much already.
        """
        async with self._turn:
            return await run_in_thread(self._put, data)

    async def get(self, key: str) -> bytes | None:
        """Return what is kept; see `BlobStore.get`."""
        return await run_in_thread(self._get, key)

    async def sync(self, keys: Collection[str]) -> None:
        """Make contents survive a power cut; see `BlobStore.settle`."""
        await run_in_thread(self._sync, tuple(keys))

    def _put(self, data: bytes) -> str:
        key = sha256(data).hexdigest()
        path = self._path(key)
        try:
            if self._holds(path, key, data):
                return key
            self._make_room(len(data))
            _write(path, data)
        except OSError as error:
            message = (
                f"what a file held cannot be kept in {str(self._folder)!r}: {error.strerror or error}; "
                "the change it belongs to cannot be taken back from there"
            )
            raise StorageUnavailable(message) from error
        self._used_bytes = (self._used_bytes or 0) + len(data)
        return key

    def _get(self, key: str) -> bytes | None:
        if _KEY.fullmatch(key) is None:
            return None
        path = self._path(key)
        try:
            data = _read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("the content %s cannot be read: %s", path, error)
            return None
        if sha256(data).hexdigest() != key:
            log.warning("the content %s is damaged and is not used", path)
            return None
        return data

    def _holds(self, path: Path, key: str, data: bytes) -> bool:
        """Return whether the content is there already; a damaged one is written anew."""
        try:
            if path.lstat().st_size != len(data):
                return False
        except FileNotFoundError:
            return False
        return self._get(key) is not None

    def _make_room(self, size: int) -> None:
        if self._used_bytes is None:
            self._used_bytes = _used(self._folder)
        if self._used_bytes + size > self._limit_bytes:
            message = (
                f"the session keeps {self._used_bytes} bytes of older versions of files already, at most "
                f"{self._limit_bytes}; this change is noted without the way back"
            )
            raise StorageUnavailable(message)

    def _sync(self, keys: Sequence[str]) -> None:
        folders: set[Path] = set()
        for key in keys:
            if _KEY.fullmatch(key) is None:
                continue
            path = self._path(key)
            # Gone or refused: reading says so, by the hash.
            with suppress(OSError), path.open("rb") as file:
                os.fsync(file.fileno())
                folders.add(path.parent)
        for folder in folders:
            _flush_names(folder)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; only its owner can read it."""
    path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        # A umask or an older folder may have left more open.
        if folder.stat().st_mode & 0o077:
            folder.chmod(FOLDER_MODE)
    temp = path.with_name(f".{secrets.token_hex(8)}.tmp")
    opened = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    try:
        with os.fdopen(opened, "wb") as file:
            _ = file.write(data)
        _ = temp.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            temp.unlink()
        raise


def _read(path: Path) -> bytes:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as file:
        return file.read()


def _flush_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _used(folder: Path) -> int:
    used = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                used += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - thousands of names
    return used


MEMORY_LIMIT_BYTES = 268_435_456


class MemoryBlobStore:
    """Keeps them as long as it lives."""

    def __init__(self, *, limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        self._kept: dict[str, bytes] = {}
        self._room_bytes = limit_bytes

    async def put(self, data: bytes) -> str:
        """Keep bytes; see `BlobStore.put`."""
        key = await run_in_thread(lambda: sha256(data).hexdigest())
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
