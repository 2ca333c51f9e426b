"""A name inside an open folder, and what must hold before something is done with it. Blocking."""

import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_core.kernel.errors import AccessRefused
from agent_core.kernel.values import Value
from agent_core.workspace.files.disk.errors import (
    foreign,
    is_folder,
    is_special,
    moved_away,
    shared,
    swapped,
    written_elsewhere,
)
from agent_core.workspace.files.disk.gate.folder_gate import (
    FolderGate,
    enter_root,
    is_shared,
    is_still,
    names_below,
)


class PathHandle(Value, frozen=True, kw_only=True):
    """A name inside an open folder."""

    folder: int
    name: str
    path: Path
    """The same, for messages."""
    gate: FolderGate
    owner: int
    """The user to whom the root belongs."""

    def look(self) -> os.stat_result | None:
        """Return what is there; None: nothing.

        Raises:
            PathRefused: A link, which `path` was not when it was resolved.
        """
        try:
            found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise swapped(self.path)
        return found


@contextmanager
def place_of(path: Path, *, root: Path, gate: FolderGate) -> Generator[PathHandle]:
    """Open the folder of a real path, from the root down.

    Args:
        path: Real, below the root.
        root: Real.
        gate: Opens the folders.

    Raises:
        PathRefused: A part of the path has become a link, or it never was a real one.
        NotAFile: The root itself, or a file stands where a folder is needed.
        OSError: The system says no, or a folder is missing.
    """
    with _place(path, root, gate, gate.enter) as place:
        yield place


@contextmanager
def place_made(path: Path, *, root: Path, gate: FolderGate) -> Generator[PathHandle]:
    """Open the folder of a real path as `place_of` does; folders that are missing are made."""

    def enter(folder: int, names: Sequence[str]) -> int:
        try:
            return gate.enter(folder, names)
        except FileNotFoundError:
            return _made(folder, names, gate)

    with _place(path, root, gate, enter) as place:
        yield place


@contextmanager
def _place(
    path: Path, root: Path, gate: FolderGate, enter: Callable[[int, Sequence[str]], int]
) -> Generator[PathHandle]:
    names = names_below(path, root=root)
    if not names:
        raise is_folder(path)
    top = enter_root(gate, root)
    try:
        owner = os.fstat(top).st_uid
        folder = enter(top, names[:-1])
    finally:
        os.close(top)
    try:
        yield PathHandle(folder=folder, name=names[-1], path=path, gate=gate, owner=owner)
    finally:
        os.close(folder)


def _made(folder: int, names: Sequence[str], gate: FolderGate) -> int:
    here = os.dup(folder)
    for name in names:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=here)
            step = gate.enter(here, (name,))
        finally:
            os.close(here)
        here = step
    return here


def check_regular(found: os.stat_result, path: Path) -> None:
    """Refuse what is no regular file.

    Raises:
        NotAFile: A folder or something special.
    """
    if stat.S_ISDIR(found.st_mode):
        raise is_folder(path)
    if not stat.S_ISREG(found.st_mode):
        raise is_special(path)


def check_changeable(place: PathHandle, found: os.stat_result) -> None:
    """Refuse to replace or delete what a rename could and its user does not want.

    Raises:
        AccessRefused: It is write-protected, somebody else's, or in a folder that everybody writes to.
    """
    other_user = os.geteuid() != os.getuid()  # not every system can be asked about that
    if not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=other_user):
        message = f"Permission denied: {place.path} is write-protected (EACCES)."
        raise AccessRefused(message, advice=" Ask the user before changing that.")
    if found.st_uid not in {os.geteuid(), place.owner}:
        raise foreign(place.path, owner=found.st_uid)
    check_folder(place)


def check_folder(place: PathHandle) -> None:
    """Refuse to put names into a folder into which everybody does.

    Raises:
        AccessRefused: It is such a one.
    """
    if is_shared(os.fstat(place.folder)):
        raise shared(place.path)


def check_in_place(place: PathHandle) -> None:
    """Refuse to go on in a folder that was moved, or that another one has replaced.

    Raises:
        StaleText: It was.
    """
    if not is_still(place.folder, place.path.parent, gate=place.gate):
        raise moved_away(place.path)


def check_written_in_place(place: PathHandle) -> None:
    """Make sure that what was written is where its path says.

    Raises:
        EditUnverified: Its folder was moved meanwhile.
    """
    if not is_still(place.folder, place.path.parent, gate=place.gate):
        raise written_elsewhere(place.path)
