"""Removal of what a command made under protected names, by descriptors: follows no link, touches nothing outside.

Blocking.
"""

import os
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from errno import ESTALE, EXDEV
from pathlib import Path
from typing import Final

from agent_core.kernel.private_file import make_private_folder
from agent_core.workspace.sandbox.guards.git import (
    MOST_BYTES,
    NEUTRAL_CONFIG,
    is_tame_hooks,
    neutral_config,
)
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
PLAIN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ROOT_QUARANTINE: Final = ".tiller-quarantine"
"""Begins the name of a folder in a root for what cannot be moved to the quarantine, which is on another file system."""
POINTERS: Final = ("commondir", "gitdir", "config.worktree", "modules")
"""Files of a git folder that lead to another configuration; a new repository has none."""
GIT_NAMES: Final = frozenset({"hooks", "info", "objects", "refs", "branches", "logs", "lfs"})
"""Folders of a new repository."""
MOST_NAME_BYTES: Final = 240
"""A name with the addition that makes it free is not longer than any file system takes."""
ATTRIBUTES: Final = "attributes"


class Quarantine:
    """Moves what commands must not make out of the workspace."""

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        """Create a quarantine: `folder` is created when needed, `roots` are those that things are moved from."""
        self._folder = folder
        self._roots = sorted(roots, key=lambda root: len(root.parts), reverse=True)
        self._root_quarantine = f"{ROOT_QUARANTINE}-{secrets.token_hex(4)}"

    def take(self, path: Path, entry: GuardedEntry) -> bool:
        """Move one thing away, if it still is what was seen; returns whether it is gone from there."""
        with suppress(OSError), self._parent(path) as parent:
            found = os.lstat(path.name, dir_fd=parent)
            if (found.st_dev, found.st_ino) == entry.identity:
                self._move(parent, path.name, root=self._root(path))
                return True
        return False

    def restore_link(self, path: Path, target: str, new: GuardedEntry | None) -> bool:
        """Restore a link that is gone or was replaced, after moving the replacement away; return whether it worked."""
        if new is not None and not self.take(path, new):
            return False
        with suppress(OSError), self._parent(path) as parent:
            os.symlink(target, path.name, dir_fd=parent)
            return True
        return False

    def neutralize(self, path: Path, entry: GuardedEntry) -> tuple[str, ...]:
        """Remove from a new git folder what makes git run programs or look elsewhere.

        Returns:
            The names in it that were taken away or, of the configuration, replaced; its objects and refs stay.

        Raises:
            OSError: Something in it cannot be looked at or moved.
        """
        taken: list[str] = []
        with self._parent(path) as parent, _opened(path.name, parent) as folder:
            found = os.fstat(folder)
            if (found.st_dev, found.st_ino) != entry.identity:
                return ()
            root = self._root(path)
            for name in _names(folder):
                if _is_unwanted(name, folder):
                    self._move(folder, name, root=root)
                    taken.append(name)
            if "info" in _names(folder):
                with _opened("info", folder) as info:
                    if ATTRIBUTES in _names(info):
                        self._move(info, ATTRIBUTES, root=root)
                        taken.append(f"info/{ATTRIBUTES}")
            if self._replace_config(folder, root=root):
                taken.append("config")
        return tuple(taken)

    def make_readable(self, path: Path, entry: GuardedEntry) -> bool:
        """Make a new folder readable for its owner; returns whether that was possible."""
        with suppress(OSError), self._parent(path) as parent:
            found = os.lstat(path.name, dir_fd=parent)
            if (found.st_dev, found.st_ino) != entry.identity or found.st_uid != os.geteuid():
                return False
            if found.st_mode & stat.S_IRWXU == stat.S_IRWXU:
                return False
            _open_for_owner(path.name, parent, found)
            return True
        return False

    def _replace_config(self, folder: int, *, root: Path) -> bool:
        """Replace a configuration by those of its lines that make git run nothing."""
        if "config" not in _names(folder):
            _write_config(folder, NEUTRAL_CONFIG)
            return False
        with open(os.open("config", PLAIN, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
            data = file.read(MOST_BYTES + 1)
            links = os.fstat(file.fileno()).st_nlink
        text = data.decode("utf-8", "replace") if len(data) <= MOST_BYTES else ""
        neutral = neutral_config(text)
        if neutral.encode() == data and links == 1:
            return False
        self._move(folder, "config", root=root)
        _write_config(folder, neutral)
        return True

    def _move(self, parent: int, name: str, *, root: Path) -> None:
        """Move one entry of an opened folder away, whatever it is.

        Raises:
            OSError: It cannot be moved.
        """
        mode = stat.S_IMODE(os.fstat(parent).st_mode)
        if is_closed := mode & stat.S_IRWXU != stat.S_IRWXU:
            # Its owner may move nothing out of it; a command can have seen to that.
            os.fchmod(parent, mode | stat.S_IRWXU)
        try:
            self._move_out(parent, name, root=root)
        finally:
            if is_closed:
                os.fchmod(parent, mode)

    def _move_out(self, parent: int, name: str, *, root: Path) -> None:
        # The name means nothing any more, also where it stays in the workspace.
        free = f"{os.fsdecode(os.fsencode(name)[:MOST_NAME_BYTES])}.{secrets.token_hex(4)}"
        make_private_folder(self._folder)
        found = os.lstat(name, dir_fd=parent)
        if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # A folder gets another parent only where its owner may write to it.
            _open_for_owner(name, parent, found)
        with _opened(str(self._folder), None) as into:
            try:
                os.rename(name, free, src_dir_fd=parent, dst_dir_fd=into)
            except OSError as error:
                if error.errno != EXDEV:
                    raise
            else:
                return
        with _opened(str(root), None) as at:
            with suppress(FileExistsError):
                os.mkdir(self._root_quarantine, 0o700, dir_fd=at)
            with _opened(self._root_quarantine, at) as root_quarantine:
                os.rename(name, free, src_dir_fd=parent, dst_dir_fd=root_quarantine)

    @contextmanager
    def _parent(self, path: Path) -> Generator[int]:
        """Open the folder that something lies in, from its root downwards, through no link."""
        root = self._root(path)
        opened = os.open(root, FOLDER)
        try:
            for part in path.relative_to(root).parts[:-1]:
                inner = os.open(part, FOLDER, dir_fd=opened)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    def _root(self, path: Path) -> Path:
        """Return the innermost root around a path.

        Raises:
            OSError: There is none.
        """
        for root in self._roots:
            if path != root and path.is_relative_to(root):
                return root
        message = f"not inside of a root: {path}"
        raise OSError(message)


@contextmanager
def _opened(name: str, parent: int | None) -> Generator[int]:
    opened = os.open(name, FOLDER, dir_fd=parent)
    try:
        yield opened
    finally:
        os.close(opened)


def _write_config(folder: int, text: str) -> None:
    with open(os.open("config", NEW, 0o644, dir_fd=folder), "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        _ = file.write(text)


def _open_for_owner(name: str, parent: int, found: os.stat_result) -> None:
    """Grant the owner of a folder all rights to it.

    Raises:
        OSError: Something else stands there by now, or the folder belongs to others.
    """
    opened = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        now = os.fstat(opened)
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
            raise OSError(ESTALE, os.strerror(ESTALE), name)
        # By descriptor: the name may lead elsewhere already. One without rights cannot be opened otherwise.
        os.chmod(f"/proc/self/fd/{opened}", stat.S_IMODE(now.st_mode) | stat.S_IRWXU)  # noqa: PTH101 - a descriptor
    finally:
        os.close(opened)


def _names(folder: int) -> list[str]:
    return sorted(os.listdir(folder))


def _is_unwanted(name: str, folder: int) -> bool:
    """Return whether something in a new git folder leads git to programs or elsewhere."""
    mode = os.lstat(name, dir_fd=folder).st_mode
    if name in POINTERS:
        return True
    if name == "config":
        return not stat.S_ISREG(mode)
    if not stat.S_ISDIR(mode):
        # A link may lead to a folder of hooks.
        return stat.S_ISLNK(mode)
    if name == "hooks":
        with _opened(name, folder) as hooks:
            return not is_tame_hooks(_names(hooks))
    return name not in GIT_NAMES
