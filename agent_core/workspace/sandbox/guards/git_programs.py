"""Finds the files of a workspace that git runs or reads settings from because hooks or settings lead there. Blocking."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.guards.git_folders import git_folders, git_text
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

MOST_INCLUDES: Final = 32
"""Files of settings of one repository that are followed."""
GIT_FOLDER: Final = ".git"
_SETTING: Final = re.compile(
    r"""^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(?P<key>[a-z][a-z0-9-]*)[ \t]*=[ \t]*(?P<value>(?:\\\n|[^\n])+)""",
    re.IGNORECASE | re.MULTILINE,
)
_PROGRAM_KEYS: Final = re.compile(
    r"""textconv|clean|smudge|process|driver|command|cmd|external|fsmonitor|editor|pager|program|askpass|sshcommand
    |helper|gitproxy|.*hook|alternaterefscommand|uploadpack|receivepack|path""",
    re.IGNORECASE | re.VERBOSE,
)
"""Keys whose value git runs as a command line, or as a program (`merge.tool.path`)."""
Setting = tuple[str, str]
_WORD: Final = re.compile(r"[^\s\"'`;|&()<>$!=\\]+")


class GitPrograms(Value, frozen=True, kw_only=True):
    """Places in the roots, real."""

    there: frozenset[Path]
    """Files, and folders of hooks, that are there."""
    vacant: frozenset[Path]
    """Places where nothing exists: git would run or read a file created there."""
    problem: str | None = None
    """Why not all of them are known; None: they are."""


class _NotRead(ValueError):
    """A file of settings that git reads and that was not read."""


def git_programs(
    entries: Mapping[str, GuardedEntry], *, roots: Sequence[Path], settings: Sequence[Path] = ()
) -> GitPrograms:
    """Find the places that the repositories in some roots and around them direct git to.

    Args:
        entries: Entries of the index of the roots.
        roots: Absolute and resolved.
        settings: The user's own settings files; relative paths in them apply to every repository.
    """
    named: set[Path] = set()
    try:
        _, own = _settings_of(settings)
        for top, folders in _repositories(entries, roots):
            named.update(_named_by(top, folders))
            named.update(place for key, value in own for place in _places(key, value, top))
    except _NotRead as error:
        return GitPrograms(there=frozenset(), vacant=frozenset(), problem=str(error))
    real = {Path(os.path.realpath(place)) for place in named}
    inside = {place for place in real if any(root in place.parents for root in roots)}
    there = frozenset(place for place in inside if os.path.lexists(place))
    return GitPrograms(there=there, vacant=frozenset(inside - there))


def first_made(place: Path, roots: Iterable[Path]) -> Path | None:
    """Return what stands at a place that was vacant, or the link that leads there by now; None: neither."""
    around = [root for root in roots if root in place.parents]
    if not around:
        return None
    at = max(around, key=lambda root: len(root.parts))
    for part in place.relative_to(at).parts:
        at /= part
        try:
            found = os.lstat(at)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return at
    return at


def _repositories(
    entries: Mapping[str, GuardedEntry], roots: Sequence[Path]
) -> Iterator[tuple[Path, Sequence[Path]]]:
    """Yield each working tree with its git folders: those in the roots and those that the roots lie in."""
    for name, entry in entries.items():
        if entry.kind == "git":
            yield _working_tree(Path(name).parent)
        elif entry.kind == "repository":
            yield Path(name), (Path(name),)
    for root in roots:
        for parent in root.parents:
            if os.path.lexists(parent / GIT_FOLDER):
                yield _working_tree(parent)
                break


def _working_tree(top: Path) -> tuple[Path, Sequence[Path]]:
    return top, [folder.path for folder in git_folders(top)]


def _named_by(top: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield what the hooks and settings of a repository name."""
    for folder in folders:
        hooks = folder / "hooks"
        with suppress(OSError):
            yield from (one for one in (hooks, *hooks.iterdir()) if one.is_symlink())
        configs = [folder / name for name in ("config", "config.worktree")]
        # A link to settings may lead into the workspace, as may one that settings name.
        yield from (one for one in configs if one.is_symlink())
        files, settings = _settings_of(configs)
        yield from files[len(configs) :]
        for key, value in settings:
            yield from _places(key, value, top)


def _settings_of(given: Iterable[Path]) -> tuple[Sequence[Path], Sequence[Setting]]:
    """Return files of settings with those that they include in turn, there or not, and all that they set.

    Raises:
        _NotRead: One is too long, or there are too many.
    """
    files, settings = [*given], list[Setting]()
    for file in files:
        if len(files) > MOST_INCLUDES:
            message = f"git reads more than {MOST_INCLUDES} files of settings for it"
            raise _NotRead(message)
        for key, value in _settings(_text(file)):
            settings.append((key, value))
            if key == "path":
                named = file.parent / os.path.expanduser(value.strip('"'))  # noqa: PTH111 - also without a home
                files += [named] if named not in files else []
    return files, settings


def _text(file: Path) -> str:
    """Return the text of a file of settings; of one that is not there, or is no file (`/dev/null`), an empty one."""
    try:
        return git_text(file)
    except OSError:
        return ""
    except ValueError as error:
        if not file.is_file():
            return ""
        message = f"{file}, from which git takes settings for it, is too long to be read"
        raise _NotRead(message) from error


@lru_cache(maxsize=256)
def _settings(text: str) -> tuple[Setting, ...]:
    """Return the settings of a text that may lead to a file, with keys in lower case and without their sections. Pure."""
    return tuple(
        (match["key"].lower(), match["value"].strip())
        for match in _SETTING.finditer(text)
        if match["value"].strip('"').startswith("!")
        or match["key"].lower() == "hookspath"
        or _PROGRAM_KEYS.fullmatch(match["key"])
    )


def _places(key: str, value: str, top: Path) -> Iterator[Path]:
    """Yield where a setting leads when git works in a working tree."""
    if key == "hookspath":
        folder = top / value.strip('"')
        yield folder
        with suppress(OSError):
            yield from (one for one in folder.iterdir() if one.is_symlink())
        return
    for at, match in enumerate(_WORD.finditer(value)):
        word = match[0]
        place = top / word
        # A first word without a slash is looked for on the PATH; an option may end in a path, but is none.
        if "/" in word and not word.startswith(("-", "~")):
            if not place.is_dir():
                yield place
        elif at and place.is_file():
            yield place
