"""Reads which refs and reflogs a repository has, so that a command that removes some is seen. Blocking; runs no git."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.small_file import read_plain

MOST_REFS: Final = 2_000
"""Of a repository with more, those beyond are not known."""
MOST_REF_BYTES: Final = 4_096
MOST_PACKED_BYTES: Final = 1_048_576
PARTS: Final = ("HEAD", "config", "index", "objects", "refs", "logs", "worktrees")
"""Entries of the `.git` folder that are reported when they are deleted, or, for files, emptied."""
PACKED: Final = re.compile(r"([0-9a-f]{40,64}) (refs/\S+)")
NAMED: Final = re.compile(r"[0-9a-f]{40,64}|ref: refs/\S+")


class RepositorySnapshot(Value, frozen=True, kw_only=True):
    """State of the `.git` folder of a root; all fields are empty if there is none."""

    folder: Path
    parts: frozenset[Path]
    refs: Mapping[Path, str]
    """Targets of the refs, `HEAD` included, by path; refs that git could not read are left out."""
    logs: Mapping[Path, int]
    """The sizes of reflogs, by the path of their ref."""


def look_at_repository(root: Path) -> RepositorySnapshot:
    """Return what a root's repository holds; a `.git` that is no folder counts as none."""
    git = root / ".git"
    if git.is_symlink() or not git.is_dir():
        return RepositorySnapshot(folder=git, parts=frozenset(), refs={}, logs={})
    parts = {git, *(git / name for name in PARTS if _holds_something(git / name))}
    refs = _packed(git)
    for path in (git / "HEAD", *_files(git / "refs")):
        text = _text(path, MOST_REF_BYTES).strip()
        if NAMED.fullmatch(text):
            refs[path] = text
        else:
            _ = refs.pop(path, None)
    logs: dict[Path, int] = {}
    for path in _files(git / "logs"):
        with suppress(OSError):
            logs[git / path.relative_to(git / "logs")] = path.lstat().st_size
    return RepositorySnapshot(folder=git, parts=frozenset(parts), refs=refs, logs=logs)


def lost_refs(before: RepositorySnapshot, now: RepositorySnapshot) -> Iterator[tuple[Path, str]]:
    """Yield what is gone, the outermost alone, each with the object that it named, or an empty text.

    A ref that names something else counts if no reflog tells what it named; a reflog, if it is shorter.
    """
    gone = before.parts - now.parts
    outermost = {path for path in gone if gone.isdisjoint(path.parents)}
    yield from ((path, before.refs.get(path, "")) for path in sorted(outermost))
    renamed = {named for path, named in now.refs.items() if path not in before.refs}
    for path, named in sorted(before.refs.items()):
        is_kept = now.refs.get(path) == named or (path in now.refs and path in now.logs)
        is_kept = is_kept or (path not in now.refs and named in renamed)
        is_head = path.name == "HEAD" and path in now.refs
        if not is_kept and not is_head and gone.isdisjoint((path, *path.parents)):
            yield path, named
    logs = before.folder / "logs"
    for path, size in sorted(before.logs.items()):
        if logs not in gone and path in now.refs and now.logs.get(path, 0) < size:
            yield logs / path.relative_to(before.folder), ""


def _holds_something(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() or path.lstat().st_size > 0
    return False


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for at, _, names in os.walk(folder):
        for name in names:
            if count >= MOST_REFS:
                return
            if not name.endswith(".lock"):
                count += 1
                yield Path(at, name)


def _packed(git: Path) -> dict[Path, str]:
    lines = (
        PACKED.fullmatch(line)
        for line in _text(git / "packed-refs", MOST_PACKED_BYTES).splitlines()
    )
    return {git / line[2]: line[1] for line in lines if line is not None}


def _text(path: Path, most_bytes: int) -> str:
    with suppress(OSError, ValueError):
        return read_plain(path, most_bytes=most_bytes).decode("utf-8")
    return ""
