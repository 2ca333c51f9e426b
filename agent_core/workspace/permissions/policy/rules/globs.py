"""Compares paths with the globs of rules: `*` and `?` within a name, `**` over folders."""

import fnmatch
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ANY_FOLDERS = "**"


def covers_path(glob: str, path: Path, *, roots: Sequence[Path]) -> bool:
    """Return whether a glob means a path as it is spelt.

    A relative glob is looked for below every root; without a `/` in it, it means the name in any folder.
    """
    return any(_matches(parts, path.parts) for parts in _places(glob, roots))


def may_mean_path(glob: str, path: Path, *, roots: Sequence[Path]) -> bool:
    """Return whether a glob may mean a path on a disk that takes other spellings for the same name, or a folder above it."""
    folded = _folded(path.parts)
    ways = [_folded(parts) for parts in _places(glob, roots)]
    return any(_matches(way, folded) or _matches((*way, ANY_FOLDERS), folded) for way in ways)


def exact_glob(path: Path) -> str:
    """Write a path as a glob that means nothing else."""
    return _literal(str(path))


def _places(glob: str, roots: Sequence[Path]) -> list[tuple[str, ...]]:
    if glob.startswith("/"):
        return [Path(glob).parts]
    parts = tuple(part for part in glob.split("/") if part not in {"", "."})
    if len(parts) == 1 and not glob.endswith("/"):
        parts = (ANY_FOLDERS, *parts)
    return [(*(_literal(part) for part in root.parts), *parts) for root in roots]


def _literal(name: str) -> str:
    """Write a name of a real folder so that a glob means nothing else by it."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def _matches(glob: Sequence[str], names: Sequence[str]) -> bool:
    """Compare name by name. Each pair is looked at once, so many `**` cost no more than their product."""

    @cache
    def rest(at: int, name: int) -> bool:
        if at == len(glob):
            return name == len(names)
        if glob[at] == ANY_FOLDERS:
            return rest(at + 1, name) or (name < len(names) and rest(at, name + 1))
        return (
            name < len(names)
            and fnmatch.fnmatchcase(names[name], glob[at])
            and rest(at + 1, name + 1)
        )

    return rest(0, 0)
