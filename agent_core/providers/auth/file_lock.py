"""Keeps two processes from changing one small file at the same time."""

import errno
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from agent_core.kernel.private_file import make_private_folder

SUFFIX = ".lock"
FILE_MODE = 0o600
LOOK_S = 0.05
_TAKEN = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class LockTaken(Exception):
    """Another process holds the lock and did not let go in time."""


if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@asynccontextmanager
async def locked(path: Path, *, wait_s: float) -> AsyncGenerator[None]:
    """Hold the lock of a file, which need not exist; it ends with the context, or with the process.

    Raises:
        LockTaken: Another holder kept the lock for `wait_s`.
        OSError: The folder cannot be written.
    """
    lock = path.with_name(path.name + SUFFIX)
    fd = await anyio.to_thread.run_sync(_opened, lock)
    try:
        with anyio.move_on_after(wait_s) as waiting:
            # The kernel's lock is asked for again and again: a thread that waits in it could not be called back.
            while not _taken(fd):  # noqa: ASYNC110 - nobody in this process could set an event
                await anyio.sleep(LOOK_S)
        if waiting.cancelled_caught:
            message = f"{lock} is held by another process; try again"
            raise LockTaken(message)
        yield
    finally:
        os.close(fd)


def _opened(lock: Path) -> int:
    make_private_folder(lock.parent)
    return os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), FILE_MODE)


def _taken(fd: int) -> bool:
    try:
        _take(fd)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True
