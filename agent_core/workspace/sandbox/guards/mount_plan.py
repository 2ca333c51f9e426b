"""Plans what is mounted over the roots of a workspace for one command, from what the index knows. Blocking: follows links."""

import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

import agent_core
from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.guards.git import RUNS_PROGRAMS, git_folders, git_programs
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

GitAccess = Literal["closed", "data", "open"]
"""Changes of repositories that a command may make: none; of data, not of what makes git run programs; all."""
MountKind = Literal["writable", "read-only", "empty file", "empty folder"]

MOST_PATH_BYTES: Final = 65_536
"""Of all places together: they are handed over as one argument, and the system takes no longer one than 128 KiB."""
MOST_MOUNTS: Final = 512  # decision 0064
"""bubblewrap looks through all mounts for each one more: 64 cost it 13 ms, 256 some 120 ms, 1,000 a second and a half."""
DATA_ONLY: Final = (
    *(name for name in RUNS_PROGRAMS if name != "info"),
    *(
        "info/attributes",
        "info/grafts",
        "worktrees",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ),
)
"""Entries of a git folder whose data may be written that define which programs run, and where git looks for programs
and for objects.
"""


class MountPlan(Value, frozen=True, kw_only=True):
    """Mounts over the roots of a workspace."""

    mounts: Mapping[Path, MountKind] = msgspec.field(default_factory=dict[Path, MountKind])
    """By place, real. A place inside of another lies over it."""
    data: tuple[Path, ...] = ()
    """Git folders whose data may be written."""
    vacant: frozenset[Path] = frozenset()
    """Real places in the roots that git or a protected link leads to, and at which nothing is: nothing must be made there."""
    problem: str | None = None
    """Why it cannot all be held, as a sentence without its end; then nothing must be started as contained."""

    @property
    def read_only(self) -> tuple[Path, ...]:
        """Places that cannot be changed."""
        return tuple(path for path, kind in self.mounts.items() if kind == "read-only")

    @property
    def hidden(self) -> tuple[Path, ...]:
        """Places that show as empty."""
        return tuple(path for path, kind in self.mounts.items() if kind.startswith("empty"))


def plan_holds(
    entries: Mapping[str, GuardedEntry],
    *,
    roots: Sequence[Path],
    git: GitAccess,
    visible: Collection[Path] = (),
    tracked: Collection[Path] = (),
    settings: Sequence[Path] = (),
) -> MountPlan:
    """Plan the mounts for one command.

    Args:
        entries: Entries of the index of the roots.
        roots: Absolute and resolved.
        git: Changes of repositories that the command may make.
        visible: Files of secrets that a person allowed to be read, real.
        tracked: Files with names of secrets that git holds with the same content: they are not hidden.
        settings: The user's own files of git's settings.
    """
    mounts: dict[Path, MountKind] = {}
    data: list[Path] = []
    vacant: set[Path] = set()
    for name, entry in entries.items():
        path = Path(name)
        if entry.kind in {"git", "repository"}:
            if git == "closed" and entry.target is not None:
                return MountPlan(
                    problem=f"{path} is a link, and a link to a repository cannot be held in its place"
                )
            folders = () if git == "closed" else tuple(_repositories(path, entry))
            data += folders if git == "data" else ()
            mounts |= _git_mounts(path, entry, folders, git=git, roots=roots)
        elif path not in tracked:
            mounts |= _mounts(path, entry, roots=roots, visible=visible)
            vacant |= _vacant(path, entry, roots)
        elif entry.kind == "protected secret":
            mounts[path] = "read-only"
    for root in roots:
        _ = mounts.pop(root, None)
    mounts |= dict.fromkeys(_own_code(tuple(roots)), "read-only")
    if git != "open":
        programs = git_programs(entries, roots=roots, settings=settings)
        if programs.problem is not None:
            return MountPlan(problem=programs.problem)
        mounts |= dict.fromkeys((one for one in programs.there if one not in roots), "read-only")
        vacant |= programs.vacant
    pins = _pins(entries, mounts, roots)
    whole: dict[Path, MountKind] = {**dict.fromkeys(pins, "writable"), **mounts}
    size = sum(len(os.fsencode(path)) + 1 for path in whole)
    if len(whole) > MOST_MOUNTS or size > MOST_PATH_BYTES:
        problem = (
            f"{len(whole)} places in it would have to be held ({size} bytes of paths), and at most {MOST_MOUNTS} can be "
            f"({MOST_PATH_BYTES} bytes)"
        )
        return MountPlan(problem=problem)
    return MountPlan(
        mounts=dict(sorted(whole.items())),
        data=tuple(dict.fromkeys(data)),
        vacant=frozenset(vacant),
    )


def _git_mounts(
    path: Path,
    entry: GuardedEntry,
    folders: Sequence[Path],
    *,
    git: GitAccess,
    roots: Sequence[Path],
) -> Mapping[Path, MountKind]:
    match git:
        case "closed":
            return {**_closed(path, roots), **_elsewhere(path, entry, roots)}
        case "open":
            return dict.fromkeys(folders, "writable")
        case "data":
            mounts: dict[Path, MountKind] = {}
            for folder in folders:
                mounts |= _data_only(folder)
            if entry.kind == "git" and stat.S_ISREG(entry.mode):
                mounts[path] = "read-only"
            return mounts


def _mounts(
    path: Path, entry: GuardedEntry, *, roots: Sequence[Path], visible: Collection[Path]
) -> Mapping[Path, MountKind]:
    match entry.kind:
        case "secret" | "protected secret":
            return _secret(path, entry, visible=visible)
        case "protected" if entry.target is not None:
            real = _real_inside(path, roots)
            return {} if real is None else {real: "read-only"}
        case "protected" | "unreadable":
            return {path: "read-only"}
        case _:
            return {}


def _vacant(path: Path, entry: GuardedEntry, roots: Sequence[Path]) -> frozenset[Path]:
    """Return the target of a protected link if nothing exists there: a file created there has the link's name."""
    if entry.target is None or not entry.kind.startswith("protected"):
        return frozenset()
    real = Path(os.path.realpath(path))
    is_inside = any(root in real.parents for root in roots)
    return frozenset() if not is_inside or os.path.lexists(real) else frozenset({real})


def git_pointers(folders: Iterable[Path]) -> frozenset[Path]:
    """Return what there is in git folders that leads git to programs or to other settings. Blocking."""
    return frozenset(
        folder / name for folder in folders for name in DATA_ONLY if os.path.lexists(folder / name)
    )


def _closed(path: Path, roots: Sequence[Path]) -> Mapping[Path, MountKind]:
    if path not in roots:
        return {path: "read-only"}
    # A bare repository that was opened as a workspace: it is no folder of the workspace, it is the workspace.
    names = ("HEAD", "objects", "refs", "packed-refs", *RUNS_PROGRAMS)
    return {path / name: "read-only" for name in names if (path / name).exists()}


def _elsewhere(path: Path, entry: GuardedEntry, roots: Sequence[Path]) -> Mapping[Path, MountKind]:
    """Return the git folders of a worktree that lie outside of the roots: git in it reads them also where a home is hidden."""
    if entry.kind != "git" or not stat.S_ISREG(entry.mode):
        return {}
    folders = [folder.path for folder in git_folders(path.parent)]
    outside = (one for one in folders if not any(one.is_relative_to(root) for root in roots))
    return dict.fromkeys(outside, "read-only")


def _repositories(path: Path, entry: GuardedEntry) -> Iterator[Path]:
    """Yield the git folders behind an entry; those outside of its root only if they name it back."""
    if entry.kind == "repository":
        yield path
    else:
        yield from (folder.path for folder in git_folders(path.parent))


def _data_only(folder: Path) -> Mapping[Path, MountKind]:
    """Return the mounts that leave only the data of a git folder writable."""
    mounts: dict[Path, MountKind] = {folder: "writable"}
    for name in DATA_ONLY:
        place = folder / name
        if place.exists() and not place.is_symlink():
            mounts[place] = "read-only"
    return mounts


def _secret(
    path: Path,
    entry: GuardedEntry,
    *,
    visible: Collection[Path],
) -> Mapping[Path, MountKind]:
    real = Path(os.path.realpath(path)) if entry.target is not None else path
    try:
        mode = entry.mode if entry.target is None else real.stat().st_mode
    except OSError:
        return {}
    if real in visible or any(real in one.parents for one in visible):
        return {real: "read-only"}
    if stat.S_ISDIR(mode):
        # What a link of such a name leads to is no folder of keys.
        return {} if entry.target is not None else {real: "empty folder"}
    return {real: "empty file"} if stat.S_ISREG(mode) else {}


@lru_cache(maxsize=64)
def _own_code(roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return what we run from, where that lies in a root: a change there would run outside at our next start."""
    package = Path(agent_core.__file__).resolve().parent
    beside = [package.parent / name for name in ("tiller_server", "server/tiller_server")]
    places = (Path(sys.prefix).resolve(), package, *beside)
    return tuple(
        one for one in places if one.is_dir() and any(root in one.parents for root in roots)
    )


def _pins(
    entries: Mapping[str, GuardedEntry], mounts: Mapping[Path, MountKind], roots: Sequence[Path]
) -> frozenset[Path]:
    """Return the folders around what is held, which are mounted so that they cannot be exchanged."""
    # A link cannot be held itself: it is put back, for which its folder must be there.
    links = (Path(name) for name, one in entries.items() if one.target and one.kind != "link")
    around = {pin for path in (*mounts, *links) for pin in _around(path, roots)} - mounts.keys()
    # What is held is held with all that is in it: a writable mount would lie over that.
    return frozenset(pin for pin in around if _is_writable(pin, mounts))


def _is_writable(path: Path, mounts: Mapping[Path, MountKind]) -> bool:
    """Return whether the innermost mount around a place leaves it writable; so it is where there is none."""
    around = next((parent for parent in path.parents if parent in mounts), None)
    return around is None or mounts[around] == "writable"


def _around(path: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders between a root and a place in it: held in their place too, none can be exchanged."""
    yield from (parent for parent in path.parents if any(root in parent.parents for root in roots))


def _real_inside(path: Path, roots: Sequence[Path]) -> Path | None:
    """Return what a link leads to, if that lies in a root."""
    real = Path(os.path.realpath(path))
    return real if real.exists() and any(root in real.parents for root in roots) else None
