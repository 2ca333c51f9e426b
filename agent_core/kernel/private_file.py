"""Writes small files of ours that only their user may read: whole or not at all, one writer at a time. Blocking."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final

LOCK_WAIT_S: Final = 10.0
LOOK_S: Final = 0.02
FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, all for the user alone.

    `Path.mkdir(parents=True)` would give the mode to the last one only.

    Raises:
        OSError: One of them cannot be made, or something else has its name.
    """
    missing = [folder] if not folder.is_dir() else []
    while missing and not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock that lies beside a file, which need not exist; missing folders are made.

    Raises:
        OSError: The folder cannot be written, or another process held the lock for 10 s.
    """
    make_private_folder(path.parent)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    fd = os.open(path.with_name(path.name + ".lock"), flags, FILE_MODE)
    try:
        until_s = time.monotonic() + LOCK_WAIT_S
        while not _taken(fd):
            if time.monotonic() > until_s:
                raise OSError(0, "another process holds its lock")
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(fd)


def replace_text(path: Path, text: str, *, mode: int = FILE_MODE) -> None:
    """Replace a file with a text atomically: readers see the old content or the new.

    Raises:
        OSError: The text could not be written; the file is unchanged.
    """
    fd, temporary = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            _ = file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        _ = Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


if sys.platform == "win32":
    import msvcrt

    def _taken(fd: int) -> bool:
        with suppress(OSError):
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            return True
        return False

else:
    import fcntl

    def _taken(fd: int) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
