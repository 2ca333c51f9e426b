"""Reads git's index: which file held which object when git looked at it last. Runs no git; pure but for one read."""

import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agent_core.kernel.values import Value

MOST_BYTES: Final = 67_108_864
HEAD: Final = struct.Struct(">4sLL")
ENTRY: Final = struct.Struct(">10L20sH")
"""Times of change and of modification (seconds, nanoseconds each), device, inode, mode, user, group, size, object, flags."""
EXTENDED: Final = 0x4000
NAME_BITS: Final = 0x0FFF
STAGE_BITS: Final = 0x3000
VERSIONS: Final = frozenset({2, 3})
ALIGNED: Final = 8


class _Head(NamedTuple):
    mark: bytes
    version: int
    entries: int


class _Entry(NamedTuple):
    ctime_s: int
    ctime_ns: int
    mtime_s: int
    mtime_ns: int
    device: int
    inode: int
    mode: int
    user: int
    group: int
    size: int
    object: bytes
    flags: int


class TrackedFile(Value, frozen=True):
    """A file as git knew it."""

    mtime_ns: int
    inode: int
    size: int
    object: bytes


def index_of(root: Path) -> bytes | None:
    """Read the index of a repository that begins at a folder. Blocks.

    Returns:
        None: There is none, or one that this cannot read.
    """
    try:
        opened = os.open(root / ".git" / "index", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                return None
            return file.read()
    except OSError:
        return None


def tracked_in(index: bytes, *, written_ns: int) -> Mapping[bytes, TrackedFile]:
    """Return the files of an index by their path, those of which git can be sure.

    Args:
        index: Its bytes.
        written_ns: When it was written: a file that was modified then or later may hold something else.
    """
    found: dict[bytes, TrackedFile] = {}
    if len(index) < HEAD.size:
        return found
    mark, version, entries = _Head(*HEAD.unpack_from(index))
    if mark != b"DIRC" or version not in VERSIONS:
        return found
    at = HEAD.size
    try:
        for _ in range(entries):
            at = _entry(index, at, found, written_ns)
    except (struct.error, ValueError):
        # Cut off, or of a kind that is not known here: what is not sure is not used.
        return {}
    return found


def _entry(index: bytes, at: int, found: dict[bytes, TrackedFile], written_ns: int) -> int:
    """Read one entry; gives where the next one begins."""
    fields = _Entry(*ENTRY.unpack_from(index, at))
    flags = fields.flags
    begin = at + ENTRY.size + (2 if flags & EXTENDED else 0)
    end = index.index(b"\0", begin)
    mtime_ns = fields.mtime_s * 1_000_000_000 + fields.mtime_ns
    if flags & NAME_BITS < NAME_BITS and end - begin != flags & NAME_BITS:
        message = "the index has objects of another size, or a format that is not known"
        raise ValueError(message)
    is_file = stat.S_ISREG(fields.mode)
    if is_file and not flags & STAGE_BITS and mtime_ns < written_ns:
        found[index[begin:end]] = TrackedFile(mtime_ns, fields.inode, fields.size, fields.object)
    return at + (end - at + ALIGNED) // ALIGNED * ALIGNED
