"""Folders opened and listed by descriptor, so that no link can lead out between check and use. Blocking."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from agent_core.workspace.files.disk.errors import missing, no_folder
from agent_core.workspace.files.disk.gate.folder_gate import FolderGate, enter_root
from agent_core.workspace.files.disk.path_handle import place_of
from agent_core.workspace.port import DirectoryEntry

LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FolderEntryKind: TypeAlias = Literal["file", "folder", "other"]


def kind_of(mode: int) -> FolderEntryKind:
    """Return what a mode of the system means."""
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def entries_of(path: Path, *, root: Path, gate: FolderGate) -> tuple[DirectoryEntry, ...]:
    """List a folder. Links are followed to tell what they lead to, and no further.

    Args:
        path: Real, the root or below it.
        root: Real.
        gate: Opens the folders.

    Raises:
        FileMissing: Nothing there.
        NotAFolder: A file or something special, there or on the way.
        PathRefused: A part of the path has become a link.
        OSError: The system says no.
    """
    with folder_of(path, root=root, gate=gate) as folder, os.scandir(folder) as found:
        return tuple(_entry(one) for one in found)


@contextmanager
def folder_of(path: Path, *, root: Path, gate: FolderGate) -> Generator[int]:
    """Open a folder for listing; raises as `entries_of` does."""
    try:
        opened = _opened(path, root, gate)
    except FileNotFoundError as error:
        raise missing(path) from error
    except NotADirectoryError as error:
        raise no_folder(path) from error
    try:
        yield opened
    finally:
        os.close(opened)


def _opened(path: Path, root: Path, gate: FolderGate) -> int:
    if path == root:
        top = enter_root(gate, root)
        try:
            return os.open(".", LISTED, dir_fd=top)
        finally:
            os.close(top)
    with place_of(path, root=root, gate=gate) as place:
        found = place.look()
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise no_folder(path)
        try:
            return os.open(place.name, LISTED, dir_fd=place.folder)
        except NotADirectoryError:
            # Linux says so of a link that came meanwhile, too.
            _ = place.look()
            raise


def _entry(found: os.DirEntry[str]) -> DirectoryEntry:
    is_link = found.is_symlink()
    try:
        target = found.stat(follow_symlinks=is_link)
    except OSError:
        return DirectoryEntry(name=found.name, kind="missing", size=0, is_link=is_link)
    kind = kind_of(target.st_mode)
    return DirectoryEntry(
        name=found.name,
        kind=kind,
        size=target.st_size if kind == "file" else 0,
        is_link=is_link,
    )
