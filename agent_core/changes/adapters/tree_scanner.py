"""Knows the files of some folders by size and times, and says which are others since it looked last."""

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from agent_core.tools.builtin.search.globs import EXCLUDE, GIT_FOLDER, LIMIT_BYTES, FolderRules
from agent_core.workspace.files.folder_watch import FolderWatch
from agent_core.workspace.files.ignore_rules import Rules, read_rules

CACHES: Final = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox"}
)
"""Cache folders that tools create and recreate: excluded from review, whether or not git ignores them."""
CLOSED: Final = frozenset({GIT_FOLDER, "node_modules", ".venv", "venv"})
"""Repositories, and folders that package managers fill: where git ignores them, only that they are gone is seen."""
LEFT_OUT: Final = frozenset({".tiller"}) | CACHES
IGNORE_FILE: Final = ".gitignore"
MOST_FILES: Final = 200_000
MOST_UNWATCHED: Final = 20_000
"""Where the system does not say in which folders something happened, every file is looked at every time."""
MOST_S: Final = 3.0
MOST_IGNORED: Final = 2_000
"""Entries of folders that git ignores, the shallowest first: of deeper ones only the folder is known."""


class Stat(NamedTuple):
    """File metadata that shows a change without reading the file."""

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int


class FileDifference(NamedTuple):
    """A file that is another one; None: nothing is, or was, there."""

    path: str
    """Ends with a slash when it is a folder that git ignores and that is gone with all that was in it."""
    before: Stat | None
    after: Stat | None


class ScanLimitExceeded(Exception):
    """The folders hold more than can be looked through in good time."""


GONE_FOLDER: Final = Stat(0, 0, 0, 0)
NO_RULES: Final = FolderRules(prefix="")


class _Folder(Struct):
    files: dict[str, Stat]
    folders: set[str]
    rules: FolderRules = NO_RULES
    is_ignored: bool = False

    @property
    def size(self) -> int:
        """How many entries are known."""
        return len(self.files) + len(self.folders) + 1


class TreeScanner:
    """The files below some roots; of what git ignores no more than `MOST_IGNORED`. One thread at a time."""

    def __init__(self, *, most_files: int = MOST_FILES, most_s: float = MOST_S) -> None:
        self._most_files = most_files
        self._most_s = most_s
        self._folders: dict[str, _Folder] = {}
        self._roots: tuple[str, ...] = ()
        self._watch: FolderWatch | None = None
        self._count = 0
        self._count_ignored = 0
        self._is_stopped = False
        self._is_stale = True
        """The rules of what is ignored changed: everything is looked at as if for the first time."""

    @property
    def is_started(self) -> bool:
        """Return whether somebody looked already."""
        return bool(self._roots)

    def stop(self) -> None:
        """Stop scanning; a scan in another thread ends soon."""
        self._is_stopped = True

    def rest(self) -> None:
        """Release the file system watches. No scan may be in progress in another thread."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def start(self, roots: Sequence[Path]) -> bool:
        """Scan the roots unless a current scan of them exists; return whether a scan was made.

        Raises:
            TooMuch: The roots hold too many files, the scan takes too long, or `stop` was called.
        """
        names = tuple(str(root) for root in roots)
        if names == self._roots and not self._is_stale:
            return False
        self.rest()
        with suppress(OSError):
            self._watch = FolderWatch()
        self._folders, self._count, self._count_ignored = {}, 0, 0
        self._roots, self._is_stale = names, False
        try:
            until = time.monotonic() + self._most_s
            for root in names:
                _ = list(self._enter(root, _root_rules(root), until))
        except BaseException:
            self._is_stale = True
            raise
        return True

    def refresh(self) -> list[FileDifference]:
        """Look again, where something happened; gives what is different, a file once.

        Raises:
            TooMuch: There is too much by now.
        """
        changed = None if self._watch is None else self._watch.take()
        looked = list(self._folders) if changed is None else [*changed]
        until = time.monotonic() + self._most_s
        found: dict[str, FileDifference] = {}
        for name in sorted(looked):
            for one in self._look(name, until):
                first = found.get(one.path)
                found[one.path] = one if first is None else one._replace(before=first.before)
        if any(one.path.endswith(f"/{IGNORE_FILE}") for one in found.values()):
            self._is_stale = True
        return [one for one in found.values() if one.before != one.after]

    def files(self) -> Iterator[tuple[str, Stat]]:
        """Return every file with what is known of it, those included that a pattern for names ignores."""
        for name, folder in self._folders.items():
            if not folder.is_ignored:
                for file, found in folder.files.items():
                    yield f"{name}/{file}", found

    def stat(self, path: str) -> Stat | None:
        """Return what is known of a file."""
        folder, _, name = path.rpartition("/")
        scanned_folder = self._folders.get(folder)
        return None if scanned_folder is None else scanned_folder.files.get(name)

    def ignores(self, path: str) -> bool:
        """Return whether a file is one that git ignores; also one that is gone, if its folder is there."""
        if path.endswith("/"):
            return True
        folder = path
        while folder not in self._folders:
            folder, _, _ = folder.rpartition("/")
            if not folder:
                return False
        if self._folders[folder].is_ignored:
            return True
        root = next((one for one in self._roots if _is_below(path, one)), "")
        return self._folders[folder].rules.ignores(path[len(root) + 1 :])

    def _look(self, name: str, until: float) -> Iterator[FileDifference]:
        """Bring one folder up to date."""
        scanned_folder = self._folders.get(name)
        if scanned_folder is None:
            return
        listed = _listed(name)
        if listed is None:
            yield from self._leave(name)
            return
        files, folders = listed
        if scanned_folder.is_ignored:
            yield from self._look_ignored(name, scanned_folder, files, folders)
            return
        for file in scanned_folder.files.keys() | files.keys():
            before, after = scanned_folder.files.get(file), files.get(file)
            if before != after:
                yield FileDifference(f"{name}/{file}", before, after)
        self._count += len(files) - len(scanned_folder.files)
        scanned_folder.files = files
        ignored = {
            one for one in folders if self._is_ignored(f"{name}/{one}", scanned_folder.rules)
        }
        for gone in sorted(scanned_folder.folders - folders):
            yield from self._leave(f"{name}/{gone}")
        for new in sorted(folders - scanned_folder.folders - ignored):
            yield from self._enter(f"{name}/{new}", scanned_folder.rules, until)
        self._enter_ignored([f"{name}/{one}" for one in sorted(ignored - scanned_folder.folders)])
        scanned_folder.folders = folders
        self._check(until)

    def _look_ignored(
        self, name: str, scanned_folder: _Folder, files: dict[str, Stat], folders: set[str]
    ) -> Iterator[FileDifference]:
        """Update a folder that git ignores; only created and deleted entries count, not modified files."""
        for file in scanned_folder.files.keys() ^ files.keys():
            yield FileDifference(f"{name}/{file}", scanned_folder.files.get(file), files.get(file))
        for gone in sorted(scanned_folder.folders - folders):
            yield from self._leave(f"{name}/{gone}")
        new = sorted(folders - scanned_folder.folders)
        self._count_ignored -= scanned_folder.size
        scanned_folder.files, scanned_folder.folders = files, folders
        self._count_ignored += scanned_folder.size
        self._enter_ignored([f"{name}/{one}" for one in new])

    def _enter(self, name: str, rules: FolderRules, until: float) -> Iterator[FileDifference]:
        """Scan a folder recursively and yield its files as new; folders that git ignores are added last."""
        left = [(name, rules)]
        ignored: list[str] = []
        while left:
            at, above = left.pop()
            # Watched before it is looked at, so that nothing happens in between.
            self._add_watch(at)
            listed = _listed(at)
            if listed is None:
                continue
            files, folders = listed
            inner = self._rules(at, files, above)
            self._folders[at] = _Folder(files, folders, inner)
            self._count += len(files)
            self._check(until)
            yield from (FileDifference(f"{at}/{file}", None, one) for file, one in files.items())
            paths = sorted(f"{at}/{one}" for one in folders)
            own = [path for path in paths if self._is_ignored(path, inner)]
            left += [(path, inner) for path in paths if path not in own]
            ignored += own
        self._enter_ignored(ignored)

    def _enter_ignored(self, names: Iterable[str]) -> None:
        """Add folders that git ignores, breadth first, up to `MOST_IGNORED` entries; those in `CLOSED` are skipped."""
        left = deque(names)
        while left and self._count_ignored < MOST_IGNORED:
            at = left.popleft()
            if at.rpartition("/")[2] in CLOSED:
                continue
            self._add_watch(at)
            listed = _listed(at)
            if listed is None:
                continue
            folder = _Folder(*listed, is_ignored=True)
            if self._count_ignored + folder.size > MOST_IGNORED:
                if self._watch is not None:
                    self._watch.drop(at)
                continue
            self._count_ignored += folder.size
            self._folders[at] = folder
            left += [f"{at}/{one}" for one in sorted(folder.folders)]

    def _leave(self, name: str) -> Iterator[FileDifference]:
        left = [name]
        while left:
            at = left.pop()
            scanned_folder = self._folders.pop(at, None)
            if self._watch is not None:
                self._watch.drop(at)
            if scanned_folder is None or scanned_folder.is_ignored:
                yield FileDifference(f"{at}/", GONE_FOLDER, None)
                self._drop_ignored(at, scanned_folder)
                continue
            self._count -= len(scanned_folder.files)
            yield from (
                FileDifference(f"{at}/{file}", one, None)
                for file, one in scanned_folder.files.items()
            )
            left += [f"{at}/{one}" for one in scanned_folder.folders]

    def _drop_ignored(self, name: str, scanned_folder: _Folder | None) -> None:
        left = [(name, scanned_folder)]
        while left:
            at, folder = left.pop()
            if folder is not None:
                if self._watch is not None:
                    self._watch.drop(at)
                self._count_ignored -= folder.size
                inner = [f"{at}/{one}" for one in folder.folders]
                left += [(one, self._folders.pop(one, None)) for one in inner]

    def _add_watch(self, name: str) -> None:
        if self._watch is None:
            return
        try:
            self._watch.add(name)
        except FileNotFoundError:
            return
        except OSError:
            # No room: from here on every folder is looked at.
            self.rest()

    def _check(self, until: float) -> None:
        most = (
            self._most_files if self._watch is not None else min(MOST_UNWATCHED, self._most_files)
        )
        if self._count > most:
            message = f"the workspace has more than {most} files that git does not ignore"
            raise ScanLimitExceeded(message)
        if self._is_stopped:
            message = "the session is over"
            raise ScanLimitExceeded(message)
        if time.monotonic() > until:
            message = f"looking through the workspace takes more than {self._most_s:g} s"
            raise ScanLimitExceeded(message)

    def _rules(self, name: str, files: Mapping[str, Stat], above: FolderRules) -> FolderRules:
        if IGNORE_FILE not in files or name in self._roots:
            return above
        root = next(one for one in self._roots if _is_below(name, one))
        rules = {IGNORE_FILE: _rules_in(f"{name}/{IGNORE_FILE}")}
        return FolderRules(prefix=f"{name[len(root) + 1 :]}/", rules=rules, parent=above)

    def _is_ignored(self, folder: str, rules: FolderRules) -> bool:
        if folder.endswith(f"/{GIT_FOLDER}"):
            return True
        root = next((one for one in self._roots if _is_below(folder, one)), "")
        return rules.ignores(f"{folder[len(root) + 1 :]}/")


def _root_rules(root: str) -> FolderRules:
    sources = {IGNORE_FILE: f"{root}/{IGNORE_FILE}", EXCLUDE.name: f"{root}/{EXCLUDE.as_posix()}"}
    rules = {name: _rules_in(path) for name, path in sources.items()}
    return FolderRules(prefix="", rules=rules, is_repository=True)


def _rules_in(path: str) -> Rules:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return Rules(lines=())
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return Rules(lines=())
        return read_rules(file.read(LIMIT_BYTES).decode("utf-8", "replace"))


def _listed(folder: str) -> tuple[dict[str, Stat], set[str]] | None:
    """Return the files and folders in a folder, no links; None: it is gone, or cannot be read."""
    files: dict[str, Stat] = {}
    folders: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in LEFT_OUT:
                        folders.add(entry.name)
                elif entry.is_file(follow_symlinks=False) and not _is_ours(entry.name):
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        files[entry.name] = Stat(
                            found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns
                        )
    except OSError:
        return None
    return files, folders


def _is_ours(name: str) -> bool:
    return name.startswith(".tiller-") and name.endswith(".tmp")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
