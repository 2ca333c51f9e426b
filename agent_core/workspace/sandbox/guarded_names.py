"""The protected names of a workspace: which there are before a command, and which it has put there. Blocking."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_core.kernel.own_file import make_private_folder
from agent_core.kernel.records import dataclass
from agent_core.workspace.protected import (
    PROTECTED_FOLDERS,
    PROTECTED_NAMES,
    PROTECTED_PATTERNS,
    folded,
)
from agent_core.workspace.sandbox.git_folders import RUNS_PROGRAMS, GitFolder, is_tame

MOST_FOLDERS: Final = 256
MOST_ENTRIES: Final = 4096
"""More of a folder is not looked at before and after every command."""
PASSED_BY: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target", ".git"})
GIT: Final = ".git"

_SINGLE: Final = frozenset(
    name.casefold() for name in (*PROTECTED_FOLDERS, *PROTECTED_NAMES) if "/" not in name
)
_PAIRS: Final = tuple(tuple(name.split("/")) for name in PROTECTED_FOLDERS if "/" in name)

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was there, each with device and inode: something else of the same name is something new."""

    names: Mapping[Path, Identity]


def look(roots: Iterable[Path], git: Iterable[GitFolder]) -> Seen:
    """Find the protected names in the roots and the folders directly in them, and in the git folders."""
    names: dict[Path, Identity] = {}
    for place in _places(roots, git):
        with suppress(OSError):
            found = os.lstat(place)
            names[Path(place)] = (found.st_dev, found.st_ino)
    return Seen(names=names)


def new_since(before: Seen, after: Seen) -> tuple[Path, ...]:
    """Give what was not there before, or was something else; the outermost of them. Pure."""
    new = {path for path, one in after.names.items() if before.names.get(path) != one}
    return tuple(sorted(path for path in new if not new.intersection(path.parents)))


def quarantine(paths: Iterable[Path], *, into: Path) -> tuple[Path, ...]:
    """Move files and folders away, and give those that were moved; a new repository that runs nothing stays."""
    moved: list[Path] = []
    for path in paths:
        if path.name == GIT and is_tame(path):
            continue
        with suppress(OSError, shutil.Error):
            make_private_folder(into)
            _ = shutil.move(path, _free(into / path.name))
            moved.append(path)
    return tuple(moved)


def _places(roots: Iterable[Path], git: Iterable[GitFolder]) -> Iterator[str]:
    for root in roots:
        yield from _in_folder(str(root))
        for folder in _folders(root):
            yield from _in_folder(folder)
    for folder in git:
        for name in RUNS_PROGRAMS:
            yield f"{folder.path}/{name}"


def _in_folder(folder: str) -> Iterator[str]:
    names = _names(folder)
    for name in names:
        if _is_protected(name):
            yield f"{folder}/{name}"
    for first, second in _PAIRS:
        for name in names:
            if name.casefold() == first:
                yield f"{folder}/{name}/{second}"


@lru_cache(maxsize=16_384)
def _is_protected(name: str) -> bool:
    plain = folded(name)
    return plain in _SINGLE or any(fnmatchcase(plain, one) for one in PROTECTED_PATTERNS)


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)]
    except OSError:
        return []


def _folders(root: Path) -> list[str]:
    found: list[str] = []
    with suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.name not in PASSED_BY and entry.is_dir(follow_symlinks=False):
                found.append(entry.path)
                if len(found) == MOST_FOLDERS:
                    break
    return found


def _free(path: Path) -> Path:
    number, free = 0, path
    while free.is_symlink() or free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
