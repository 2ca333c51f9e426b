"""Reads the lines that a session file has gained since it was last read. Everything here blocks."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.storage.adapters.recovery import parse_line

LINE_BYTES = 64 << 20
"""A longer line is left out of the index; reading it would take several times as much memory."""
MARK_BYTES = 1024
"""How much at either end of what was read is looked at to see whether it is still the same."""


class FileStamp(Value, frozen=True, kw_only=True):
    """Size, time and inode of a file: a file with another stamp must be read again."""

    size: int
    mtime_ns: int
    inode: int


class ScannedLine(Value, frozen=True):
    """A line that was read, or passed over because there is no entry in it."""

    raw: JsonObject | None
    end: int
    """Where the next line begins, in bytes."""


def stamp(path: Path) -> FileStamp | None:
    """Look at a file; None when it is gone or cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return FileStamp(size=found.st_size, mtime_ns=found.st_mtime_ns, inode=found.st_ino)


def mark(file: BinaryIO, end: int) -> bytes:
    """Remember what the first `end` bytes were, by their beginning and their end."""
    file.seek(0)
    head = file.read(min(end, MARK_BYTES))
    start = max(0, end - MARK_BYTES)
    file.seek(start)
    return hashlib.blake2b(head + file.read(end - start), digest_size=16).digest()


def lines(file: BinaryIO, start: int) -> Iterator[ScannedLine]:
    """Return the whole lines from a place on; a last one without its newline only when there is an object in it."""
    file.seek(start)
    end = start
    while line := file.readline(LINE_BYTES):
        size = len(line)
        if not line.endswith(b"\n") and size == LINE_BYTES:
            size += _skip_line(file)
            line = b""
        raw = parse_line(line)
        if raw is None and line and not line.endswith(b"\n"):
            return
        end += size
        yield ScannedLine(raw, end)


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while rest := file.readline(1 << 20):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def open_file(path: Path) -> BinaryIO:
    """Open a file that others may write meanwhile."""
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")
