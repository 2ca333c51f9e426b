"""Finds files with names of secrets that git holds unchanged: committed content is hidden from no command. Blocking."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from agent_core.workspace.files.small_file import read_plain
from agent_core.workspace.sandbox.guards.git_folders import git_folders
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

MOST_FILE_BYTES: Final = 1_048_576
"""A larger file counts as a secret."""
MOST_INDEX_BYTES: Final = 67_108_864
"""Of a larger index nothing counts as tracked."""
SHA1_BYTES: Final = 20
NAME_BITS: Final = 0x0FFF
STAGE_BITS: Final = 0x3000

SecretFileStamp = tuple[int, int, int, int]


class TrackedSecrets:
    """Compares files with the index of their repository, each again when one of the two has changed."""

    def __init__(self) -> None:
        self._indexes: dict[Path, tuple[SecretFileStamp, bytes]] = {}
        self._judged: dict[Path, tuple[SecretFileStamp, SecretFileStamp, bool]] = {}

    def among(self, entries: Mapping[str, GuardedEntry]) -> frozenset[Path]:
        """Return the secret files among what is held that the index of their repository has with the same content."""
        secrets = [
            Path(name)
            for name, entry in entries.items()
            if entry.kind in {"secret", "protected secret"} and stat.S_ISREG(entry.mode)
        ]
        if not secrets:
            return frozenset()
        tops = {
            Path(name).parent
            for name, entry in entries.items()
            if entry.kind == "git" and entry.target is None
        }
        return frozenset(path for path in secrets if self._is_tracked(path, tops))

    def _is_tracked(self, path: Path, tops: Iterable[Path]) -> bool:
        top = next((parent for parent in path.parents if parent in tops), None)
        if top is None:
            return False
        try:
            index_stamp, index = self._index(top)
            stamp = _stamp(os.lstat(path))
            cached = self._judged.get(path)
            if cached is not None and cached[:2] == (stamp, index_stamp):
                return cached[2]
            tracked = _object_of(index, os.fsencode(path.relative_to(top)))
            is_same = tracked is not None and tracked == _blob(path)
            self._judged[path] = stamp, index_stamp, is_same
        except (OSError, ValueError):
            return False
        return is_same

    def _index(self, top: Path) -> tuple[SecretFileStamp, bytes]:
        """Return the index of a repository with its stamp.

        Raises:
            OSError: There is none.
            ValueError: It is none that can be read.
        """
        folders = git_folders(top)
        if not folders:
            message = f"no repository of its own: {top}"
            raise ValueError(message)
        # Of a worktree the last is its own.
        place = folders[-1].path / "index"
        stamp = _stamp(os.lstat(place))
        if place not in self._indexes or self._indexes[place][0] != stamp:
            self._indexes[place] = stamp, read_plain(place, most_bytes=MOST_INDEX_BYTES)
        return self._indexes[place]


def _object_of(index: bytes, name: bytes) -> bytes | None:
    """Return the object that an index has for a path (git, index-format.adoc, versions 2 and 3); None: it has none. Pure."""
    at = 0
    while (at := index.find(name + b"\0", at + 1)) > 0:
        flags = int.from_bytes(index[at - 2 : at], "big")
        if flags & NAME_BITS == min(len(name), NAME_BITS) and not flags & STAGE_BITS:
            return index[at - 2 - SHA1_BYTES : at - 2]
    return None


def _blob(path: Path) -> bytes:
    """Return the name that git gives to the content of a file."""
    data = read_plain(path, most_bytes=MOST_FILE_BYTES)
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).digest()


def _stamp(found: os.stat_result) -> SecretFileStamp:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
