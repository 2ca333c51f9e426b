"""The part of the user's homes that contained commands see, and the session's private temporary folder.

It is asked for before every command, so paths are strings and each is looked at once.
"""

import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.environment import HOME_FOLDERS, LOCATED
from agent_core.workspace.sandbox.guards.secret_places import SecretPlaces

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateFolder:
    """Makes the folder when it is first needed."""

    def __init__(self) -> None:
        self._top: Path | None = None
        self._end: weakref.finalize[..., PrivateFolder] | None = None

    @property
    def top(self) -> Path:
        """The folder around all of it. Blocking."""
        return self._made()

    @property
    def path(self) -> Path:
        """The folder. Blocking."""
        return self._made() / "shared"

    @property
    def empty_file(self) -> Path:
        """A file with nothing in it, which no command can change. Blocking."""
        return self._made() / "empty"

    def close(self) -> None:
        """Remove it. Blocking, idempotent."""
        if self._end is not None:
            _ = self._end()
        self._top = None

    def _made(self) -> Path:
        if self._top is None:
            top = self._top = Path(os.path.realpath(tempfile.mkdtemp(prefix="tiller-tmp-")))
            # Also when nobody closes: with this object, or at the latest with the process.
            self._end = weakref.finalize(self, _remove, top)
            (top / "shared").mkdir(mode=0o700)
            (top / "empty").touch(mode=0o444)
        return self._top


def _remove(top: Path) -> None:
    """Remove a folder, however deep it is."""
    try:
        shutil.rmtree(top, ignore_errors=True)
    except RecursionError:
        _flatten(top)
        shutil.rmtree(top, ignore_errors=True)


def _flatten(top: Path) -> None:
    """Move all that is in the folders of a folder directly into it, through no link."""
    with suppress(OSError):
        into = os.open(top, FOLDER)
        try:
            names, count = os.listdir(into), 0  # noqa: PTH208 - a descriptor
            while names:
                with suppress(OSError):
                    name = names.pop()
                    if not stat.S_ISDIR(os.lstat(name, dir_fd=into).st_mode):
                        continue
                    inner = os.open(name, FOLDER, dir_fd=into)
                    try:
                        os.fchmod(inner, 0o700)
                        for one in os.listdir(inner):  # noqa: PTH208 - a descriptor
                            count += 1
                            os.rename(one, f".{count}.flat", src_dir_fd=inner, dst_dir_fd=into)
                            names.append(f".{count}.flat")
                    finally:
                        os.close(inner)
        finally:
            os.close(into)


SYSTEM: Final = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/snap"),
    *("/sys", "/usr", "/System", "/Library", "/Applications"),
)  # fmt: skip
"""Accounts of services have their homes in these, and programs lie there: neither they nor what is below is closed."""
SHARED: Final = frozenset(
    {"/", "/Users", "/Volumes", "/home", "/media", "/mnt", "/run", "/srv", "/tmp", "/var", "/var/tmp"}  # noqa: S108 - names of places
)  # fmt: skip
"""Folders that are around homes, and no home."""
BINARIES: Final = frozenset({"bin", "sbin", ".bin"})
ENVIRONMENTS: Final = ("pyvenv.cfg", "conda-meta")
"""A folder with one of these is an environment of Python."""
PARTS_OF_PREFIX: Final = ("lib", "libexec", "lib64")
"""A folder with one of these beside its `bin` is where a program was installed to."""
_ROWS: Final = tuple((name.partition("/")[0], name) for name in HOME_FOLDERS)


class HomeView(Value, frozen=True, kw_only=True):
    """Closed homes, and the parts of them that are shown. All of it existed when it was examined."""

    closed: tuple[Path, ...]
    """The homes, real, none in another one; each is to show as empty."""
    shown: tuple[Path, ...]
    """Real, below a closed home, none in another one: to be shown read-only. Secret places inside must still be masked."""
    links: tuple[tuple[Path, Path], ...] = ()
    """Paths below a closed home at which a link leads to something that is shown or lies outside of the homes, each with
    the real path that it leads to: to be made as a link, so that it leads nowhere but inside."""


def home_view(
    *,
    homes: Sequence[Path],
    env: Mapping[str, str],
    path: str,
    extra: Sequence[Path],
    secrets: SecretPlaces,
    roots: Sequence[Path] = (),
) -> HomeView:
    """Look at what of the homes to close and to show.

    Args:
        homes: The homes of the user, as real paths.
        env: The environment as the user has it; its variables name folders of tool chains.
        path: The folders of programs, as `PATH` has them.
        extra: More folders or files to show, absolute; a home, or a folder around it, keeps that home open.
        secrets: Where keys are: nothing inside of them is shown.
        roots: Folders that commands may change: a link in them opens nothing but an environment of Python.
    """
    wanted = [os.path.normpath(one) for one in extra]
    real_extra = [os.path.realpath(one) for one in wanted]
    closed = _outermost(
        home for one in homes if _can_close(home := str(one)) and not _is_in(home, real_extra)
    )
    if not closed:
        return HomeView(closed=(), shown=())
    looking = _Looking(
        closed=closed,
        secret=[str(one) for one in (*secrets.folders, *secrets.files)],
        roots=[str(root) for root in roots],
    )
    for home in closed:
        _look_at_rows(home, looking)
    for home in map(str, homes):
        if home not in closed and _is_in(home, closed):
            _look_at_rows(home, looking)
    for place in _located(env):
        looking.add(place, may_hold_secrets=False)
    for place in path.split(os.pathsep):
        if place.startswith("/"):
            _look_at_programs(os.path.normpath(place), looking)
    for place in wanted:
        _ = looking.add(place, may_hold_secrets=True)
    shown = _outermost(looking.shown)
    return HomeView(
        closed=tuple(map(_path, closed)),
        shown=tuple(map(_path, shown)),
        links=tuple(
            (_path(link), _path(looking.links[link]))
            for link in _outermost(looking.links)
            if not _is_in(link, shown)
        ),
    )


class _Looking:
    """Paths found so far."""

    def __init__(
        self, *, closed: Sequence[str], secret: Sequence[str], roots: Sequence[str]
    ) -> None:
        self.shown: set[str] = set()
        self.links: dict[str, str] = {}
        self._folders: dict[str, str | None] = {}
        self._closed = tuple(f"{one}/" for one in closed)
        self._secret = tuple(f"{one}/" for one in secret)
        self._roots = roots

    def is_closed(self, place: str) -> bool:
        """Return whether a path is spelt as one in a closed home."""
        return place.startswith(self._closed)

    def add(self, place: str, *, may_hold_secrets: bool) -> bool:
        """Show what a path leads to, when it is there and no secret, and the path itself when that has a link in it."""
        real = self._real(place)
        if real is None or f"{real}/".startswith(self._secret):
            return False
        if (
            _is_in(place, self._roots)
            and not _is_in(real, self._roots)
            and not any(os.path.lexists(f"{real}/{mark}") for mark in ENVIRONMENTS)
        ):
            # A command can have made the link.
            return False
        is_link = real != place and self.is_closed(place)
        # A link says nothing of how much is behind it.
        if (is_link or not may_hold_secrets) and self.holds_secrets(real):
            return False
        if is_link:
            self.links[place] = real
        if self.is_closed(real):
            self.shown.add(real)
        return True

    def _real(self, place: str) -> str | None:
        """Return the real path; None: there is nothing. Most are real, and `realpath` would ask for each part of each."""
        folder = place.rpartition("/")[0]
        if folder not in self._folders:
            self._folders[folder] = _real_or_none(folder)
        real = self._folders[folder]
        if real is None:
            return None
        try:
            is_plain = real == folder and not stat.S_ISLNK(os.lstat(place).st_mode)
        except OSError:
            return None
        return place if is_plain else _real_or_none(place)

    def holds_secrets(self, real: str) -> bool:
        """Return whether a secret place lies in a folder, or a home does."""
        inside = f"{real.rstrip('/')}/"
        return any(one.startswith(inside) for one in (*self._secret, *self._closed))


def _look_at_rows(home: str, looking: _Looking) -> None:
    """Look for what tool chains keep in a home."""
    try:
        there: Collection[str] = frozenset(os.listdir(home))  # noqa: PTH208 - strings are enough
    except OSError:
        return  # it shows as empty then
    for first, name in _ROWS:
        if first in there:
            _ = looking.add(f"{home}/{name}", may_hold_secrets=True)


def _located(env: Mapping[str, str]) -> Iterator[str]:
    """Return what the variables of tool chains name; one that names a search path names several."""
    for variable, parts in LOCATED:
        for folder in env.get(variable, "").split(os.pathsep):
            if folder.startswith("/"):
                yield from (os.path.normpath(f"{folder}/{part}") for part in parts)


def _look_at_programs(place: str, looking: _Looking) -> None:
    """Show a folder of programs, with what was installed together with it."""
    around, name = os.path.split(place)
    if name not in BINARIES or not _is_prefix(around, name=name, looking=looking):
        around = place
    if not looking.add(around, may_hold_secrets=False) and around != place:
        _ = looking.add(place, may_hold_secrets=False)


def _is_prefix(folder: str, *, name: str, looking: _Looking) -> bool:
    """Return whether a folder is one environment or one program, and not a place for everything, as `~/.local` is."""
    if not looking.is_closed(os.path.realpath(folder)):
        return False
    if name == ".bin" or any(os.path.lexists(f"{folder}/{mark}") for mark in ENVIRONMENTS):
        return True
    # Of a folder that a row names in parts no other parts are shown.
    if any(one.startswith(f"{folder}/") for one in looking.shown):
        return False
    return any(os.path.lexists(f"{folder}/{part}") for part in PARTS_OF_PREFIX)


def _real_or_none(place: str) -> str | None:
    try:
        return os.path.realpath(place, strict=True)
    except OSError:
        return None


@lru_cache(maxsize=1024)
def _path(place: str) -> Path:
    """Return a path; to make one takes longer than to look at it."""
    return Path(place)


def _can_close(home: str) -> bool:
    return home not in SHARED and not _is_in(home, SYSTEM) and os.path.isdir(home)  # noqa: PTH112 - as above


def _is_in(place: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of these folders or lies in one."""
    return f"{place}/".startswith(tuple(f"{one.rstrip('/')}/" for one in folders))


def _outermost(places: Iterator[str] | Collection[str]) -> list[str]:
    """Return the paths that lie in no other of them, sorted."""
    kept: list[str] = []
    for place in sorted(set(places), key=lambda one: one.split("/")):
        if not kept or not f"{place}/".startswith(f"{kept[-1]}/"):
            kept.append(place)
    return kept
