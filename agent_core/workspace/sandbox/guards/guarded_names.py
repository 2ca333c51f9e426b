"""Which names in a workspace containment holds: protected ones, repositories, files of secrets. Pure."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal

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
