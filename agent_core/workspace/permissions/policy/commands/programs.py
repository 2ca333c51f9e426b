"""Finds programs on a PATH: for rules, which hold on to one, and for what Tiller itself starts. Reads the disk."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_core.workspace.files.paths import is_inside

MOST_SCRIPTS: Final = 3
"""That are run by scripts."""
MOST_LINE_BYTES: Final = 4096
MOST_LINKS: Final = 40
"""As many as Linux follows."""
ENV: Final = "env"


def find_program(word: str, *, env_path: str, roots: Sequence[Path]) -> str | None:
    """Return the absolute path of what a word starts; None when a rule must not hold on to it.

    That is so for a relative path, for a program that lies in the workspace or leads there, and when the search comes
    past a folder that depends on where the shell stands: each of these can become another program by an edit. The same
    goes for what the first line of a script starts: `#!/usr/bin/env node` looks for `node` on the same PATH.

    Args:
        word: The first word of a command.
        env_path: The PATH of the command.
        roots: The folders of the workspace, without links.
    """
    return _find(word, env_path, roots, MOST_SCRIPTS)


def find_outside_program(word: str, *, env_path: str, roots: Sequence[Path]) -> str | None:
    """Return the absolute path of the first program of a name that no workspace can exchange; None when there is none.

    Whatever Tiller starts by itself comes from here. A workspace may lie on the PATH (`.venv/bin`, `node_modules/.bin`),
    and a contained command may write there: its programs are passed over, as are links into it and scripts that are
    run by a program of it.

    Args:
        word: A name without a slash.
        env_path: The PATH of the user.
        roots: The folders of all workspaces; links in them are followed.
    """
    if not word or "/" in word:
        return None
    real_roots = tuple(Path(os.path.realpath(root)) for root in roots)
    path = outside_path(env_path, roots=real_roots)
    for folder in path.split(os.pathsep):
        program = os.path.normpath(os.path.join(folder, word))  # noqa: PTH118 - words of a PATH
        if (
            folder
            and _is_program(program)
            and _is_firm(program, real_roots)
            and _starts_firm(program, path, real_roots, MOST_SCRIPTS)
        ):
            return program
    return None


def outside_path(env_path: str, *, roots: Sequence[Path]) -> str:
    """Return a PATH without the entries that are relative, lie in a root or lead into one."""
    real_roots = tuple(Path(os.path.realpath(root)) for root in roots)
    return os.pathsep.join(
        folder
        for folder in env_path.split(os.pathsep)
        if folder.startswith("/") and _is_firm(os.path.normpath(folder), real_roots)
    )


def _find(word: str, env_path: str, roots: Sequence[Path], scripts: int) -> str | None:
    found = _look_up(word, env_path)
    if found is None or not _is_firm(found, roots):
        return None
    return found if _starts_firm(found, env_path, roots, scripts) else None


def _look_up(word: str, env_path: str) -> str | None:
    if "/" in word:
        return word if _is_program(word) else None
    if not word or os.name == "nt":
        return None
    for folder in env_path.split(os.pathsep):
        if not folder.startswith("/"):
            return None
        found = os.path.join(folder, word)  # noqa: PTH118 - the shell's own spelling is compared
        if _is_program(found):
            return found
    return None


def _starts_firm(path: str, env_path: str, roots: Sequence[Path], scripts: int) -> bool:
    """Return whether what a script is run by cannot become another program by an edit; no script is run by itself."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path is not to be normalised
            line = file.readline(MOST_LINE_BYTES)
    except OSError:
        return True  # a program that may be run but not read is no script: its shell could not read it either
    if not line.startswith(b"#!"):
        return True
    tokens = os.fsdecode(line[2:]).split()
    if not tokens or scripts == 0:
        return False
    if os.path.basename(tokens[0]) == ENV:  # noqa: PTH119 - a word, no path
        started = next((word for word in tokens[1:] if not word.startswith("-")), "")
        if "=" in started or _find(started, env_path, roots, scripts - 1) is None:
            return False
    return tokens[0].startswith("/") and _is_firm(tokens[0], roots)


def _is_program(path: str) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - the path is not to be normalised
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and os.access(path, os.X_OK)


def _is_firm(path: str, roots: Sequence[Path]) -> bool:
    return path.startswith("/") and path == os.path.normpath(path) and not _enters(path, roots)


def _enters(path: str, roots: Sequence[Path]) -> bool:
    """Return whether a path, or a link on its way, comes through a root: entries of the root decide where it ends."""
    at, left, links = "/", path.split("/")[::-1], 0
    while left:
        part = left.pop()
        if part in {"", "."}:
            continue
        at = os.path.normpath(os.path.join(at, part))  # noqa: PTH118 - `at` has no links, so `..` is its parent
        if is_inside(Path(at), roots):
            return True
        try:
            target = os.readlink(at)  # noqa: PTH115 - the text of the link
        except OSError:
            continue
        links += 1
        if links > MOST_LINKS:
            return True
        at = "/" if target.startswith("/") else os.path.dirname(at)  # noqa: PTH120 - as above
        left += target.split("/")[::-1]
    return False
