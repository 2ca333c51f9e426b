"""Watch of folders for changes without scanning them: Linux's inotify, read on demand."""

import ctypes
import os
import struct
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

EVENT: Final = struct.Struct("iIII")
READ_BYTES: Final = 1_048_576
MOST_READS: Final = 8
"""Reads per question. The kernel's queue is shorter: events that need more arrive as fast as they are read."""
CHANGES: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x01000000 | 0x02000000
"""Written, attributes, closed after writing, moved away, moved here, made, deleted; of folders alone, and of no links."""
OVERFLOW: Final = 0x4000
GONE: Final = 0x8000


class _Event(NamedTuple):
    watch: int
    mask: int
    cookie: int
    length: int


class FolderWatch:
    """Watches folders. All of it blocks for microseconds; nothing runs between two questions."""

    def __init__(self, *, read_bytes: int = READ_BYTES) -> None:
        """Begin with no folder.

        Args:
            read_bytes: Size of one read of events.

        Raises:
            OSError: The system has no such thing, or no room for another.
        """
        if sys.platform != "linux":
            message = "folders cannot be watched cheaply here"
            raise OSError(message)
        libc = ctypes.CDLL(None, use_errno=True)
        self._add: Callable[[int, bytes, int], int] = libc.inotify_add_watch
        self._remove: Callable[[int, int], int] = libc.inotify_rm_watch
        begin: Callable[[int], int] = libc.inotify_init1
        self._fd: int = begin(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "folders cannot be watched")
        self._read_bytes = read_bytes
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}

    def add(self, folder: str) -> None:
        """Watch what is directly in a folder.

        Raises:
            OSError: It is gone, or there is no room for another watch.
        """
        watch = self._add(self._fd, os.fsencode(folder), CHANGES)
        if watch < 0:
            raise OSError(ctypes.get_errno(), "the folder cannot be watched", folder)
        # A folder that was moved keeps its watch.
        _ = self._watches.pop(self._folders.get(watch, ""), None)
        self._folders[watch], self._watches[folder] = folder, watch

    def drop(self, folder: str) -> None:
        """Watch a folder no more."""
        watch = self._watches.pop(folder, None)
        if watch is not None and self._folders.pop(watch, None) is not None:
            _ = self._remove(self._fd, watch)

    def take(self) -> set[str] | None:
        """Return the folders in which something was changed since this was last asked; None: perhaps in all of them."""
        changed: set[str] = set()
        lost = False
        for _ in range(MOST_READS):
            data = self._read()
            if not data:
                return None if lost else changed
            at = 0
            while at < len(data):
                event = _Event(*EVENT.unpack_from(data, at))
                at += EVENT.size + event.length
                lost = lost or bool(event.mask & OVERFLOW)
                folder = self._folders.get(event.watch)
                if folder is not None:
                    changed.add(folder)
                if event.mask & GONE and folder is not None:
                    self._forget(event.watch, folder)
        # The rest stays in the queue: an event that was read and not looked at could be the end of a watch.
        return None

    def close(self) -> None:
        """Close the inotify descriptor, which ends all watches; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _forget(self, watch: int, folder: str) -> None:
        del self._folders[watch]
        # Another folder may have that name by now.
        if self._watches.get(folder) == watch:
            del self._watches[folder]

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, self._read_bytes)
        except BlockingIOError:
            return b""
