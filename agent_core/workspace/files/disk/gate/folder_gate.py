"""The gate to the disk: folders are opened by their real path, and no link is ever followed on the way. Blocking."""

import os
import stat
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from agent_core.kernel.errors import PathRefused
from agent_core.workspace.files.disk.gate.openat2 import OpenAt2Gate, has_openat2
from agent_core.workspace.files.disk.gate.walk import WalkGate
from agent_core.workspace.files.paths import refusal, shown


class FolderGate(Protocol):
    """Opens folders. The folder that was checked is the one that is opened, however the names change meanwhile."""

    def enter(self, folder: int | None, names: Sequence[str]) -> int:
        """Open a folder below another; the caller closes it. It can be passed through and looked up in, not listed.

        Args:
            folder: An open one; None: the top of the file system.
            names: Plain ones, as `names_below` gives them; none of them: the folder itself.

        Raises:
            OSError: The system says no; ELOOP: there is a link on the way.
        """
        ...


@cache
def best_gate() -> FolderGate:
    """Return the gate for this machine: one step of the system where it has that, else name by name."""
    if sys.platform == "linux" and has_openat2():
        return OpenAt2Gate()
    return WalkGate()


def names_below(path: Path, *, root: Path) -> tuple[str, ...]:
    """Return the names on the way from a root down to a path; none for the root itself.

    Raises:
        PathRefused: The path is not below the root, or is no real path.
    """
    if not path.is_relative_to(root):
        raise refusal(str(path), leads_to=path, roots=(root,))
    names = path.relative_to(root).parts
    check_names(names, path)
    return names


def check_names(names: Sequence[str], path: Path) -> None:
    """Refuse names that are a way and no name.

    Raises:
        PathRefused: `..`, or what the system cannot take for a name.
    """
    for name in names:
        if name in {"", ".", ".."} or "/" in name or "\0" in name or not _has_bytes(name):
            message = f"{shown(str(path))} has {shown(name)} in it, which is no name; name a file inside the workspace"
            raise PathRefused(message)


def enter_root(gate: FolderGate, root: Path) -> int:
    """Open a root; raises as `Gate.enter` does, also when a folder above has become a link."""
    names = root.parts[1:]
    check_names(names, root)
    return gate.enter(None, names)


def is_still(folder: int, path: Path, *, gate: FolderGate) -> bool:
    """Return whether an open folder is the one that a real path names now."""
    try:
        now = enter_root(gate, path)
    except OSError:
        return False
    try:
        return os.path.samestat(os.fstat(now), os.fstat(folder))
    finally:
        os.close(now)


def is_shared(folder: os.stat_result) -> bool:
    """Return whether everybody may put files into a folder, as into /tmp."""
    return bool(folder.st_mode & stat.S_ISVTX and folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _has_bytes(name: str) -> bool:
    try:
        _ = os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True
