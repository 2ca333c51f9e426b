"""Looks at a repository's own files whether git would start programs there. Runs no git. Blocking."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_core.workspace.files.text import read_plain
from agent_core.workspace.permissions.policy.commands.git_settings import starts_programs
from agent_core.workspace.sandbox.guards.git import git_folders

MOST_CONFIG_BYTES: Final = 65_536
MOST_INDEX_BYTES: Final = 33_554_432
"""Of a larger index nobody says what it holds."""
ELSEWHERE: Final = frozenset(
    {
        # More settings, and other repositories.
        *("config.worktree", "commondir", "gitdir", "modules"),
        # What git was in the middle of: the next step may be a program.
        *("rebase-merge", "rebase-apply", "sequencer"),
    }
)
"""Names in a git folder with which its own configuration is not the whole of it."""
POINTERS: Final = frozenset({"commondir", "gitdir"})
"""Those of them that every linked worktree has; `git_folders` has followed them."""
SHARED_INDEX: Final = "sharedindex."
LINK_TO_REPOSITORY: Final = b"\x00\x00\xe0\x00"
"""The mode of an entry in the index that is a repository of its own: git runs in it, with its configuration."""
ADDRESSES: Final = frozenset({"url", "pushurl", "remote", "pushremote", "pushdefault"})
"""Keys with the address of another repository."""
PROGRAM_ADDRESS: Final = re.compile(r"(?!(?:https?|ssh|git|file)://)[^/ ]*:(?::|//)")
"""Of another repository, to be reached by a program that the address names: `git-remote-…`, looked for on the PATH."""
OLD_REMOTES: Final = ("remotes", "branches")
"""Folders of a git folder in which files of other repositories' addresses may lie."""

# Git parts lines at newlines alone, and takes only these for blank.
_BLANK: Final = r"[ \t\r]*"
_SECTION: Final = re.compile(
    rf'{_BLANK}\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\]{_BLANK}'
)
_KEY: Final = re.compile(rf"{_BLANK}([A-Za-z][A-Za-z0-9-]*){_BLANK}(?:=(.*))?", re.DOTALL)
_EMPTY: Final = re.compile(rf"{_BLANK}(?:[#;].*)?", re.DOTALL)


def git_starts_programs(root: Path) -> bool:
    """Return whether commands of git in a root may start programs that its repository names; yes when in doubt.

    The user's own configuration does not count. A repository that only begins above the root, or somewhere else than in
    its `.git` folder, is not examined, unless the root is a linked worktree that the repository names.
    """
    try:
        folder, own = _folders(root)
        names = os.listdir(folder)  # noqa: PTH208 - strings are enough
        found = {*names, *(set(os.listdir(own)) - POINTERS if own != folder else ())}  # noqa: PTH208 - as above
        if any(name in ELSEWHERE or name.startswith(SHARED_INDEX) for name in found):
            return True
        index = own / "index"
        if os.path.lexists(index) and LINK_TO_REPOSITORY in read_plain(
            index, most_bytes=MOST_INDEX_BYTES
        ):
            return True
        if any(os.listdir(folder / name) for name in OLD_REMOTES if name in names):  # noqa: PTH208 - as above
            return True
        text = read_plain(folder / "config", most_bytes=MOST_CONFIG_BYTES).decode("utf-8")
        return starts_programs(setting_names(text), hooks=_hooks(folder / "hooks"))
    except (OSError, ValueError):
        return True


def _folders(root: Path) -> tuple[Path, Path]:
    """Return the folder of a repository, and that of the work tree itself, which is another one for a linked worktree.

    Raises:
        OSError: There is none.
        ValueError: It is a link, or a folder elsewhere that is not a worktree's.
    """
    folder = root / ".git"
    mode = os.lstat(folder).st_mode
    if stat.S_ISDIR(mode):
        return folder, folder
    folders = git_folders(root) if stat.S_ISREG(mode) else ()
    if len(folders) != 2 or folders[1].path.parent != folders[0].path / "worktrees":  # noqa: PLR2004 - the common one and its own
        message = f"no worktree: {root}"
        raise ValueError(message)
    return folders[0].path, folders[1].path


def setting_names(text: str) -> tuple[str, ...]:
    """Return the names of all settings in a configuration of git. Pure.

    Raises:
        ValueError: A line is not one of the plain kinds, so git may read it otherwise.
    """
    return tuple(_names(text))


def _names(text: str) -> Iterator[str]:
    section = ""
    for line in text.split("\n"):
        if _EMPTY.fullmatch(line):
            continue
        if begun := _SECTION.fullmatch(line):
            inner = "" if begun[2] is None else f"{begun[2]}."
            section = f"{begun[1]}.{inner}"
            continue
        key = _KEY.fullmatch(line)
        if key is None or not section or line.rstrip(" \t\r").endswith("\\"):
            message = f"no plain line of a git configuration: {line!r}"
            raise ValueError(message)
        address = re.sub(r'["\\]', "", key[2] or "").strip()
        if key[1].lower() in ADDRESSES and PROGRAM_ADDRESS.match(address):
            message = f"an address that names a program: {line!r}"
            raise ValueError(message)
        yield f"{section}{key[1]}"


def _hooks(folder: Path) -> list[str]:
    """Return the names in the folder of hooks.

    Raises:
        ValueError: It is a link.
    """
    if folder.is_symlink():
        message = f"a link: {folder}"
        raise ValueError(message)
    return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - strings are enough
