"""Keeps an index of what containment holds in some folders: complete, at any depth, brought up to date.

The first look walks everything. From then on the system says in which folders something happened; where it cannot, the
change times of all folders are compared, which no program can set back. Blocking; one thread at a time.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import ENAMETOOLONG
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from agent_core.workspace.files.folder_watch import FolderWatch
from agent_core.workspace.permissions.protected_names import (
    PROTECTED_FOLDERS,
    PROTECTED_NAMES,
    PROTECTED_PATTERNS,
    SECRET_FOLDERS,
    SECRET_PAIRS,
    folded,
    is_secret_name,
)

NameKind = Literal["protected", "secret", "protected secret", "git"]
"""`secret`: it may be made and changed, but not read; `protected`: it may be read, but not made or changed."""

GIT: Final = ".git"
DEPENDENCIES: Final = frozenset(
    {"node_modules", "bower_components", "site-packages", ".venv", "venv", ".tox", ".nox"}
)
"""Folders that package managers fill and replace: only repositories are held in them."""
MARKERS: Final = frozenset({"head", "commondir", "objects", "refs"})
"""Names, in lower case, that make a folder a repository of its own (git, setup.c, `is_git_directory`)."""

_SINGLE: Final = frozenset(
    name.casefold()
    for name in (*PROTECTED_FOLDERS, *PROTECTED_NAMES)
    if "/" not in name and name != GIT
)
_PAIRS: Final[Mapping[str, frozenset[str]]] = {
    first: frozenset(
        name.partition("/")[2].casefold()
        for name in PROTECTED_FOLDERS
        if name.partition("/")[0].casefold() == first
    )
    for first in {name.partition("/")[0].casefold() for name in PROTECTED_FOLDERS if "/" in name}
}
_PATTERNS: Final = re.compile("|".join(translate(one) for one in PROTECTED_PATTERNS))
_SECRET_INSIDE: Final = frozenset(pair.partition("/")[0] for pair in SECRET_PAIRS)
_PLAIN: Final = re.compile(r"[a-zA-Z0-9_~$@+=,%#()\[\]{}!&' .-]*[a-zA-Z0-9_~$@+=,%#()\[\]{}!&'-]")
"""Names that `folded` only makes lower case."""


@lru_cache(maxsize=65_536)
def kind_of(name: str) -> NameKind | None:
    """Return what a name in a folder is to containment; None: nothing."""
    plain = name.lower() if _PLAIN.fullmatch(name) else folded(name)
    if plain == GIT:
        return "git"
    is_protected = plain in _SINGLE or _PATTERNS.match(plain) is not None
    if plain in SECRET_FOLDERS or is_secret_name(plain):
        return "protected secret" if is_protected else "secret"
    return "protected" if is_protected else None


def protected_inside(folder: str) -> frozenset[str]:
    """Return the folded names that are protected directly inside a folder of this name: `.github` and `workflows`."""
    return _PAIRS.get(folded(folder), frozenset())


def is_secret_inside(folder: str, name: str) -> bool:
    """Return whether a file is one of secrets because of the folder that it lies in: `.docker` and `config.json`."""
    inside = folded(folder)
    return inside in _SECRET_INSIDE and is_secret_name(folded(name), folder=inside)


def is_repository(names: Iterable[str]) -> bool:
    """Return whether a folder with these names in it is a repository to git, whatever it is called.

    Letter case is ignored, as some disks do.
    """
    there = {name.lower() for name in names}
    return "head" in there and ({"objects", "refs"} <= there or "commondir" in there)


EntryKind = NameKind | Literal["repository", "marker", "link", "unreadable"]
"""`repository`: a folder that git takes for one whatever its name is; `marker`: a name that makes it one."""

RACY_NS: Final = 20_000_000
"""A folder that changed so shortly before a look may have changed again within the same tick of the file system's clock."""

ALL_ENTER: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
LONGEST_PATH_BYTES: Final = 3800
"""Below a folder with a longer path there may be some that the system opens by no path (PATH_MAX, less one name)."""


class GuardedEntry(NamedTuple):
    """Something that containment holds, by what tells it from another of the same name."""

    kind: EntryKind
    device: int
    inode: int
    mode: int
    """Its type, as of `lstat`, without permissions: those change without a trace in the folder around."""
    target: str | None = None
    """Of a link: its text."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder itself, no link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


IndexScope = Literal["all", "dependencies", "protected"]
"""Search in a folder: for everything; for repositories; for repositories and secrets, as the folder itself is held."""


class _Folder(Struct):
    scope: IndexScope
    changed_ns: int = 0
    """Change time at the last look; 0: look again in any case."""
    folders: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Folders in it that are walked, with their inodes."""
    entries: tuple[str, ...] = ()
    """Paths of what is held because of this folder's own listing."""


class TreeIndex:
    """Index of the entries that containment holds below some roots."""

    def __init__(
        self, roots: Sequence[str], *, watch: Callable[[], FolderWatch] = FolderWatch
    ) -> None:
        """Create an index of absolute, resolved roots; `watch` creates the folder watch. Nothing is read yet."""
        self._roots = dict[str, tuple[int, int] | None].fromkeys(roots)
        self._make_watch = watch
        self._folders: dict[str, _Folder] = {}
        self._entries: dict[str, GuardedEntry] = {}
        self._snapshot: Mapping[str, GuardedEntry] = {}
        self._watch: FolderWatch | None = None
        self._is_started = False

    @property
    def folder_count(self) -> int:
        """How many folders are known."""
        return len(self._folders)

    @property
    def is_watched(self) -> bool:
        """Whether the system says where something happened."""
        return self._watch is not None

    def refresh(self) -> Mapping[str, GuardedEntry]:
        """Bring the index up to date and return it: absolute path to entry; the same object while nothing changed."""
        if not self._is_started:
            self._is_started = True
            with suppress(OSError):
                self._watch = self._make_watch()
        # What is done to a root itself happens in a folder that is not watched.
        for root, seen in self._roots.items():
            now = _identity(root)
            if now != seen or root not in self._folders:
                self._leave(root)
                self._enter(root, "all")
                self._roots[root] = now
        # What happened during the walk is in the queue of the watch.
        changed = None if self._watch is None else self._watch.take()
        for name in sorted(self._stale() if changed is None else changed):
            self._look(name)
        if self._snapshot != self._entries:
            self._snapshot = dict(self._entries)
        return self._snapshot

    def close(self) -> None:
        """Stop watching and forget everything. Idempotent."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._folders.clear()
        self._entries.clear()
        self._is_started = False

    def _stale(self) -> list[str]:
        """Return the folders that are others since they were last looked at."""
        found: list[str] = []
        for name, indexed in self._folders.items():
            try:
                changed_ns = os.lstat(name).st_ctime_ns
            except OSError:
                changed_ns = -1
            if changed_ns != indexed.changed_ns:
                found.append(name)
        return found

    def _look(self, name: str) -> None:
        """Bring one folder up to date."""
        indexed = self._folders.get(name)
        if indexed is None:
            return
        self._add_watch(name)
        before, before_inodes = indexed.folders, set(indexed.folders.items())
        listed = self._list(name, indexed)
        if listed is None:
            self._leave(name)
            return
        for gone, inode in before.items():
            if listed.get(gone) != inode:
                self._leave(f"{name}/{gone}")
        for new, inode in listed.items():
            path = f"{name}/{new}"
            is_other = (new, inode) not in before_inodes or path not in self._folders
            # An entry for the folder itself depends on what is in it, or on whether that can be read.
            if is_other or path in self._entries:
                self._enter(path, _scope(indexed.scope, new, name))

    def _enter(self, name: str, scope: IndexScope) -> None:
        """Add a folder with everything below it."""
        left: list[tuple[str, IndexScope]] = [(name, scope)]
        while left:
            at, inside = left.pop()
            if at in self._roots:
                inside = "all"  # whatever is around it
            if at in self._folders:
                self._leave(at)
            indexed = self._folders[at] = _Folder(inside)
            # Watched before it is listed, so that nothing happens unseen in between.
            self._add_watch(at)
            listed = self._list(at, indexed)
            if listed is None:
                self._leave(at)
                continue
            left.extend((f"{at}/{one}", _scope(inside, one, at)) for one in listed)

    def _leave(self, name: str) -> None:
        left = [name]
        while left:
            at = left.pop()
            indexed = self._folders.pop(at, None)
            if self._watch is not None:
                self._watch.drop(at)
            if indexed is not None:
                for path in indexed.entries:
                    _ = self._entries.pop(path, None)
                left += [f"{at}/{one}" for one in indexed.folders]

    def _add_watch(self, name: str) -> None:
        if self._watch is None:
            return
        try:
            self._watch.add(name)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        except OSError:
            # No room for another watch: from here on the times of all folders are compared.
            self._watch.close()
            self._watch = None

    def _list(self, name: str, indexed: _Folder) -> dict[str, int] | None:
        """List one folder into the index; returns the folders in it that are to be walked, None: it is gone."""
        for path in indexed.entries:
            _ = self._entries.pop(path, None)
        indexed.entries, indexed.folders, indexed.changed_ns = (), {}, 0
        try:
            found = os.lstat(name)
        except OSError:
            return None
        if not stat.S_ISDIR(found.st_mode):
            return None
        held: list[tuple[str, GuardedEntry]] = []
        try:
            _check_depth(name, found)
            with os.scandir(name) as entries:
                _sort_out(name, entries, indexed, held)
        except FileNotFoundError:
            return None
        except OSError:
            indexed.folders = {}
            held = [(name, _entry("unreadable", found))] if self._is_free(name) else []
        else:
            if time.time_ns() - found.st_ctime_ns > RACY_NS:
                indexed.changed_ns = found.st_ctime_ns
        markers = (path.rpartition("/")[2] for path, one in held if one.kind == "marker")
        if is_repository(markers) and self._is_free(name):
            held.append((name, _entry("repository", found)))
        indexed.entries = tuple(path for path, _ in held)
        self._entries.update(held)
        return indexed.folders

    def _is_free(self, name: str) -> bool:
        """Return whether a folder is not held by its name: the entry of the folder around it must be kept."""
        indexed = self._entries.get(name)
        return indexed is None or indexed.kind == "marker"


def _identity(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None


def _check_depth(name: str, found: os.stat_result) -> None:
    """Check that what is in a folder can be looked at.

    Raises:
        OSError: It may be listed and not entered, or lies too deep.
    """
    if found.st_mode & ALL_ENTER != ALL_ENTER:
        _ = os.lstat(f"{name}/.")
    if len(os.fsencode(name)) > LONGEST_PATH_BYTES:
        raise OSError(ENAMETOOLONG, os.strerror(ENAMETOOLONG), name)


def _sort_out(
    name: str,
    entries: Iterator["os.DirEntry[str]"],
    indexed: _Folder,
    held: list[tuple[str, GuardedEntry]],
) -> None:
    """Sort the entries of a folder into those that are held and the folders to walk."""
    folder = os.path.basename(name)  # noqa: PTH119 - thousands of paths
    inside = protected_inside(folder)
    for entry in entries:
        kind = _kind(entry.name, indexed.scope, inside)
        if (
            kind is None
            and indexed.scope != "dependencies"
            and is_secret_inside(folder, entry.name)
        ):
            kind = "secret"
        if kind == "secret" and entry.is_dir(follow_symlinks=False):
            kind = None  # these are names of files
        if kind in {None, "marker", "protected"} and entry.is_dir(follow_symlinks=False):
            indexed.folders[entry.name] = entry.inode()
            if kind is None:
                continue
        if kind is None:
            if indexed.scope == "dependencies" or not entry.is_symlink():
                continue
            if indexed.scope == "protected":
                kind = "protected"  # what it leads to counts as part of the folder
                with suppress(FileNotFoundError):
                    held.append((entry.path, _entry(kind, os.lstat(entry.path), entry.path)))
                continue
            # What `.github` leads to has workflows in it.
            kind = "protected" if protected_inside(entry.name) else "link"
        with suppress(FileNotFoundError):
            held.append((entry.path, _entry(kind, os.lstat(entry.path), entry.path)))


def _kind(name: str, scope: IndexScope, inside: frozenset[str]) -> EntryKind | None:
    kind: EntryKind | None = kind_of(name)
    if kind is None and inside and folded(name) in inside:
        kind = "protected"
    if kind == "git":
        return kind
    if scope == "dependencies" or (scope == "protected" and kind == "protected"):
        kind = None
    return "marker" if kind is None and name.lower() in MARKERS else kind


def _scope(above: IndexScope, name: str, folder: str) -> IndexScope:
    """Return what is looked for in a folder of a name, by what is looked for around it, in `folder`."""
    if above != "all":
        return above
    if name in DEPENDENCIES:
        return "dependencies"
    if kind_of(name) == "protected":
        return "protected"
    inside = protected_inside(os.path.basename(folder))  # noqa: PTH119 - as above
    return "protected" if inside and folded(name) in inside else "all"


def _entry(kind: EntryKind, found: os.stat_result, path: str | None = None) -> GuardedEntry:
    target = None
    if path is not None and stat.S_ISLNK(found.st_mode):
        with suppress(OSError):
            target = os.readlink(path)  # noqa: PTH115 - text is enough
    return GuardedEntry(kind, found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), target)
