"""The private folder of the worktrees, and a record beside each. Blocking."""

import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.private_file import (
    FILE_MODE,
    locked,
    make_private_folder,
    replace_text,
)
from agent_core.kernel.values import Value, threadsafe
from agent_core.workspace.files.text import read_plain
from agent_core.workspace.git.worktrees.values import Worktree, WorktreeRefused, WorktreeUnknown

SUFFIX: Final = ".json"
REMOVING: Final = ".removing"
"""Suffix of a folder that is being removed."""
MOST_RECORD_BYTES: Final = 65_536
ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
"""Fits the name of a folder, of a ref and of a place of git alike."""


class WorktreeRecord(Value, frozen=True, kw_only=True):
    """The stored data of a worktree. Its path is never stored: it follows from the id."""

    id: str
    repository: str
    common_dir: str
    place: str
    """The name that git has for it, below `worktrees` of the repository; empty until it is registered."""
    base: str
    owner: str
    process: str
    created_ms: int
    subfolder: str = ""
    """Where work begins, from the top."""
    base_is_dirty: bool = False
    merged: str | None = None
    """The tree that was merged last."""

    @property
    def lock_reason(self) -> str:
        """The reason with which the worktree is locked."""
        return f"tiller worktree {self.id}"

    @property
    def git_dir(self) -> Path:
        """The folder of the repository that belongs to the worktree."""
        return Path(self.common_dir) / "worktrees" / self.place


class WorktreeRecords:
    """The folder of all worktrees of a user."""

    def __init__(self, folder: Path) -> None:
        self.named = folder
        """As the configuration names it."""

    @cached_property
    def folder(self) -> Path:
        """The folder without links above it. Blocking at first use."""
        return Path(os.path.realpath(self.named.parent)) / self.named.name

    def prepare(self) -> None:
        """Make the folder, for the user alone, and check that it is that.

        Raises:
            WorktreeRefused: It cannot be made, or it is a link, or it belongs to somebody else.
        """
        try:
            make_private_folder(self.named)
            there = os.lstat(self.folder)
        except OSError as error:
            message = (
                f"the folder of worktrees {str(self.named)!r} cannot be made ({error.strerror})"
            )
            raise WorktreeRefused(message) from error
        wrong = _objection(there)
        if wrong:
            message = f"the folder of worktrees {str(self.folder)!r} {wrong}, so it is not used"
            raise WorktreeRefused(message)

    def path(self, id_: str) -> Path:
        """Return the folder of a worktree.

        Raises:
            WorktreeUnknown: That cannot be the id of one.
        """
        if ID.fullmatch(id_) is None:
            message = f"{id_!r} is no id of a worktree: use lower-case letters, digits and hyphens, at most 64"
            raise WorktreeUnknown(message)
        return self.folder / id_

    def claim(self, record: WorktreeRecord) -> None:
        """Store the record of a new worktree.

        Raises:
            WorktreeRefused: The id is taken, or the record cannot be written.
        """
        path = self.path(record.id)
        taken = f"there is already a worktree {record.id!r}; choose another id, or remove it with `tiller worktree remove {record.id}`"
        if os.path.lexists(path) or os.path.lexists(_beside(path, REMOVING)):
            raise WorktreeRefused(taken)
        try:
            fd = os.open(_beside(path, SUFFIX), os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
            with os.fdopen(fd, "wb") as file:
                _ = file.write(msgspec.json.encode(record))
        except FileExistsError:
            raise WorktreeRefused(taken) from None
        except OSError as error:
            message = (
                f"the record of the worktree {record.id!r} cannot be written ({error.strerror})"
            )
            raise WorktreeRefused(message) from error

    def store(self, record: WorktreeRecord) -> None:
        """Replace a record.

        Raises:
            OSError: It cannot be written; the old one is still there.
        """
        replace_text(_beside(self.path(record.id), SUFFIX), msgspec.json.encode(record).decode())

    def load(self, id_: str) -> WorktreeRecord:
        """Return a record.

        Raises:
            WorktreeUnknown: There is none.
            WorktreeRefused: It cannot be read.
        """
        path = _beside(self.path(id_), SUFFIX)
        try:
            content = read_plain(path, most_bytes=MOST_RECORD_BYTES)
            record = msgspec.json.decode(content, type=threadsafe(WorktreeRecord))
        except (FileNotFoundError, NotADirectoryError):
            message = f"there is no worktree {id_!r}; `tiller worktree list --all` shows all"
            raise WorktreeUnknown(message) from None
        except (OSError, ValueError) as error:
            message = f"the record {str(path)!r} of a worktree cannot be read ({error}), so nothing is done with it"
            raise WorktreeRefused(message) from error
        if record.id != id_ or "/" in record.place or record.place in {".", ".."}:
            message = f"the record {str(path)!r} is not that of the worktree {id_!r}, so nothing is done with it"
            raise WorktreeRefused(message)
        return record

    def ids(self) -> Iterator[str]:
        """Return the ids of all worktrees, in order."""
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(self.folder)):  # noqa: PTH208 - names are enough
                if name.endswith(SUFFIX) and ID.fullmatch(name.removesuffix(SUFFIX)):
                    yield name.removesuffix(SUFFIX)

    def forget(self, id_: str) -> None:
        """Delete a record."""
        path = self.path(id_)
        _beside(path, SUFFIX).unlink(missing_ok=True)
        _beside(path, ".lock").unlink(missing_ok=True)

    @contextmanager
    def hold(self, id_: str) -> Generator[None]:
        """Hold the lock of a worktree; one command at a time merges or removes it.

        Raises:
            WorktreeUnknown: There is none.
            WorktreeRefused: Another command holds it, or its record cannot be read.
        """
        path = self.path(id_)
        _ = self.load(id_)
        try:
            lock = locked(path)
            lock.__enter__()
        except OSError as error:
            message = f"the worktree {id_!r} is in use by another command ({error.strerror}); try again when that has ended"
            raise WorktreeRefused(message) from error
        try:
            yield
        finally:
            _ = lock.__exit__(None, None, None)

    def id_of(self, folder: Path) -> str | None:
        """Return the id of the worktree that a folder would be in; None: it is not below the folder of worktrees."""
        place = Path(os.path.normpath(folder))
        for base in (self.folder, self.named):
            if place != base and place.is_relative_to(base):
                return place.relative_to(base).parts[0]
        return None

    def removing(self, id_: str) -> Path:
        """Return the name that the folder of a worktree has while it is removed."""
        return _beside(self.path(id_), REMOVING)

    def is_there(self, id_: str) -> bool:
        """Return whether the folder of a worktree is there.

        Raises:
            WorktreeRefused: Something else has its name, or it belongs to somebody else.
        """
        path = self.path(id_)
        try:
            there = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        wrong = _objection(there, is_private=False)
        if wrong:
            message = f"the worktree {str(path)!r} {wrong}, so nothing is done with it"
            raise WorktreeRefused(message)
        return True

    def worktree(self, record: WorktreeRecord) -> Worktree:
        """Return the worktree of a record."""
        path = self.path(record.id)
        return Worktree(
            id=record.id,
            path=path,
            folder=path / record.subfolder,
            repository=Path(record.repository),
            base=record.base,
            owner=record.owner,
            created_ms=record.created_ms,
            base_is_dirty=record.base_is_dirty,
        )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _objection(there: os.stat_result, *, is_private: bool = True) -> str:
    """Return what is wrong with a folder of ours; empty: nothing."""
    if not stat.S_ISDIR(there.st_mode):
        return "is a link or no folder"
    if there.st_uid != os.geteuid():
        return "belongs to another user"
    if is_private and there.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return ""
