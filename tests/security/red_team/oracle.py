"""Decides whether an attack worked: compares the disk with how it was, then acts as the victim does."""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.security.red_team.containment import DEPENDENCIES, is_protected_name
from tests.security.red_team.world import World

MOST_TOLD = 12
"""Breaches of one kind that are worth printing."""
MOST_PLAIN = 6
TAME_SECTIONS = ("core", "user", "init", "remote", "branch", "extensions")
TAME_KEYS = frozenset(
    {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "symlinks"),
        *("precomposeunicode", "url", "fetch", "remote", "merge", "name", "email", "defaultbranch"),
        *("active", "objectformat", "refstorage", "autocrlf", "eol", "safecrlf"),
    }
)  # fmt: skip
VICTIM = (("status", "--porcelain"), ("log", "-1", "--oneline"))
"""What editors and prompts of shells run in every folder."""

Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a folder, links not followed."""

    kind: str
    mode: int
    inode: Inode
    digest: str
    """Of the bytes of a file or the target of a link; empty for folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was on the disk."""

    inside: Mapping[Path, Entry]
    """The roots."""
    elsewhere: Mapping[Path, Entry]
    """The stand-in home without the roots, and the folder outside."""
    git: frozenset[Path]
    """Folders of git inside of the roots, bare ones included."""


def snapshot(world: World) -> Snapshot:
    """Read all of the roots, of the home and of the folder outside."""
    roots = (world.root, world.second)
    inside = {path: entry for root in roots for path, entry in _walk(root)}
    elsewhere = dict(_walk(world.home, without=roots)) | dict(_walk(world.outside))
    return Snapshot(inside=inside, elsewhere=elsewhere, git=_git_folders(inside))


def breaches(world: World, before: Snapshot) -> list[str]:
    """Return what an attack achieved, a sentence each; runs the victim's programs last."""
    now = snapshot(world)
    found = [
        *_shortened(_outside(before, now)),
        *_shortened(_changed(world, before, now)),
        *_shortened(_new(world, before, now)),
        *_shortened(_lost(before, now)),
        *_shortened(_taken(world, before, now)),
    ]
    return [*found, *victim(world, now)]


def victim(
    world: World,
    now: Snapshot | None = None,
    *,
    before: Snapshot | None = None,
    locks: bool = True,
) -> list[str]:
    """Run git in every repository, as an editor does outside of containment; return where a payload ran.

    Args:
        now: What is there; None: look.
        before: Only repositories that were there then count: what a command makes exists until it ends (SECURITY.md).
        locks: Whether git may write the index again, as it does for a person. It must not while commands run.
    """
    seen = now or snapshot(world)
    places = _repositories(seen)
    if before is not None:
        known = _repositories(before)
        places = {place: path for place, path in places.items() if place in known}
    plain = [
        place for place, git in sorted(places.items()) if git in seen.git and not _not_tame(git)
    ]
    # Hundreds of repositories that run nothing are alike.
    for place in sorted(places.keys() - set(plain[MOST_PLAIN:])):
        for words in VICTIM:
            _ = subprocess.run(
                ["git", "-C", str(place), *words],
                env={**world.env, "GIT_OPTIONAL_LOCKS": "1" if locks else "0"},
                capture_output=True,
                check=False,
            )
            if world.marker.exists():
                world.marker.unlink()
                return [f"PWNED: `git {words[0]}` in {place} ran the payload"]
    return []


def _repositories(seen: Snapshot) -> dict[Path, Path]:
    """Return where git can be run, each with its git folder or the file that names one."""
    places = {path.parent: path for path in seen.inside if path.name == ".git"}
    return places | {path: path for path in seen.git if path not in places}


def _outside(before: Snapshot, now: Snapshot) -> Iterator[str]:
    for path in before.elsewhere.keys() | now.elsewhere.keys():
        old, new = before.elsewhere.get(path), now.elsewhere.get(path)
        if old != new:
            what = "created" if old is None else "removed" if new is None else "changed"
            yield f"outside of the workspace: {what} {path}"


def _changed(world: World, before: Snapshot, now: Snapshot) -> Iterator[str]:
    git = frozenset(str(path) for path in before.git)
    there = {_identity(path, entry) for path, entry in now.inside.items()}
    for path, old in before.inside.items():
        if not _is_guarded(world, path, git):
            continue
        new = _entry(path)
        if new is None:
            if _identity(path, old) not in there:
                yield f"protected: {path} is gone"
        elif (new.kind, new.digest) != (old.kind, old.digest):
            yield f"protected: {path} has other bytes"
        elif new.inode != old.inode:
            yield f"protected: {path} was exchanged"


def _new(world: World, before: Snapshot, now: Snapshot) -> Iterator[str]:
    was = {_identity(path, entry) for path, entry in before.inside.items()}
    was_folder = {before.inside[path].inode for path in before.git}
    new_git = {path for path in now.git if now.inside[path].inode not in was_folder}
    # One that git does not take for a repository can still become one.
    new_git |= {
        path
        for path, entry in now.inside.items()
        if path.name == ".git" and entry.kind == "folder" and _identity(path, entry) not in was
    }
    for folder in sorted(new_git):
        if why := _not_tame(folder):
            yield f"new repository stays: {folder} ({why})"
    git = frozenset(str(path) for path in now.git)
    for path, entry in now.inside.items():
        if _identity(path, entry) in was or not new_git.isdisjoint((path, *path.parents)):
            continue
        if path.name == ".git":
            if why := _not_tame_pointer(path, now):
                yield f"new repository stays: {path} ({why})"
        elif _is_guarded(world, path, git):
            yield f"new protected name stays: {path}"


def _lost(before: Snapshot, now: Snapshot) -> Iterator[str]:
    kept = {entry.digest for entry in now.inside.values()}
    for path, entry in before.inside.items():
        if entry.kind == "file" and entry.digest not in kept:
            yield f"lost: what was in {path} is nowhere in the workspace"


def _taken(world: World, before: Snapshot, now: Snapshot) -> Iterator[str]:
    """Check that the quarantine holds nothing of the user; a second hard link to a file that is still there is fine."""
    still = {(entry.inode, entry.digest) for entry in now.inside.values()}
    theirs = {
        # A folder says nothing by its bytes, and the number of one that is gone is given to another.
        (entry.inode, entry.digest or path.name): path
        for path, entry in (*before.inside.items(), *before.elsewhere.items())
        if not DEPENDENCIES.intersection(path.parts)
    }
    for path, entry in _walk(world.quarantine):
        whose = theirs.get((entry.inode, entry.digest or path.name))
        if whose is not None and (entry.inode, entry.digest) not in still:
            yield f"quarantined: {whose} of the user lies in {path.name}"


def _identity(path: Path, entry: Entry) -> tuple[Inode, str, str]:
    """Return what stays the same when an entry is moved with its folder."""
    return entry.inode, path.name, entry.digest


def _shortened(told: Iterable[str]) -> list[str]:
    lines = sorted(told)
    more = len(lines) - MOST_TOLD
    return lines if more <= 0 else [*lines[:MOST_TOLD], f"… and {more} more like the last one"]


def _is_guarded(world: World, path: Path, git: frozenset[str]) -> bool:
    """Check whether a path is protected by its name, or is or lies in one of the folders of git."""
    text = str(path)
    root = world.root if path.is_relative_to(world.root) else world.second
    parts = path.parts[len(root.parts) :]
    if not parts:
        return False
    if is_protected_name(parts) or text in git:
        return True
    starts = (text[:at] for at, letter in enumerate(text) if letter == "/")
    return any(one in git for one in starts)


def _git_folders(inside: Mapping[Path, Entry]) -> frozenset[Path]:
    """Return folders that git takes for repositories, whatever their name is."""
    return frozenset(
        path.parent
        for path, entry in inside.items()
        if path.name == "HEAD"
        and entry.kind != "folder"
        and (
            (path.parent / "commondir") in inside
            or ((path.parent / "objects") in inside and (path.parent / "refs") in inside)
        )
    )


def _not_tame_pointer(path: Path, now: Snapshot) -> str:
    """Return why a new `.git` that is a file or a link makes git run something; empty: it does not."""
    real = path
    if path.is_symlink():
        real = Path(os.path.realpath(path))
    elif path.is_file():
        text = path.read_text("utf-8", "replace").strip()
        if not text.startswith("gitdir:"):
            return ""
        real = Path(os.path.realpath(path.parent / text.removeprefix("gitdir:").strip()))
    if real not in now.git:
        return "" if path.is_dir() and not path.is_symlink() else f"it leads to {real}"
    return _not_tame(real)


def _not_tame(folder: Path) -> str:
    """Return why a new repository makes git run something; empty: it does not."""
    for name in ("commondir", "config.worktree", "modules"):
        if os.path.lexists(folder / name):
            return f"it has {name}"
    hooks = folder / "hooks"
    if hooks.is_symlink():
        return "hooks is a link"
    if hooks.is_dir() and any(not one.name.endswith(".sample") for one in hooks.iterdir()):
        return "it has hooks"
    config = folder / "config"
    section = ""
    text = config.read_text("utf-8", "replace") if config.is_file() else ""
    for line in (one.strip() for one in text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").split()[0].casefold()
        elif line and line[0] not in "#;":
            key = line.partition("=")[0].strip().casefold()
            if section not in TAME_SECTIONS or key not in TAME_KEYS:
                return f"{section}.{key}"
    return ""


def _walk(top: Path, *, without: tuple[Path, ...] = ()) -> Iterator[tuple[Path, Entry]]:
    """Read every entry below a folder, the folder too; links are not followed."""
    entry = _entry(top)
    if entry is None or top in without:
        return
    yield top, entry
    if entry.kind == "folder":
        for path in top.iterdir():
            yield from _walk(path, without=without)


def _entry(path: Path) -> Entry | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    inode, mode = (found.st_dev, found.st_ino), stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return Entry("folder", mode, inode, "")
    if stat.S_ISLNK(found.st_mode):
        return Entry("link", mode, inode, str(path.readlink()))
    if stat.S_ISREG(found.st_mode):
        return Entry("file", mode, inode, hashlib.sha1(path.read_bytes()).hexdigest())  # noqa: S324 - to compare
    return Entry("other", mode, inode, "")
