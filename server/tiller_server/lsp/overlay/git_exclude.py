"""Keeps files of ours out of git without touching anything that is shared: by the repository's own `info/exclude`."""

import os
import stat
from pathlib import Path
from typing import Final

from agent_core.workspace.git.repository import is_git_folder
from agent_core.workspace.sandbox.guards.git import git_folders

MOST_BYTES: Final = 1024 * 1024
"""A longer list of exclusions is left alone."""


def keep_out_of_git(path: Path) -> None:
    """Add a file to the `info/exclude` of the repository that contains it; without one nothing happens. Blocking.

    A worktree has the list of its main repository, a submodule one of its own; both must name their folder back. A list
    that cannot be written stays as it is: git then shows one more file.

    Args:
        path: Absolute path; the file need not exist yet.
    """
    for top in path.parents:
        marker = top / ".git"
        if marker.is_symlink():
            return
        if marker.exists():
            _exclude(top, f"/{path.relative_to(top).as_posix()}")
            return


def _exclude(top: Path, pattern: str) -> None:
    try:
        folders = git_folders(Path(os.path.realpath(top)))
        # Of a worktree the first is that of its main repository. Only what git has made is written to.
        if folders and ((top / ".git").is_dir() or is_git_folder(folders[0].path)):
            _add(folders[0].path, pattern)
    except (OSError, ValueError):
        return


def _add(folder: Path, pattern: str) -> None:
    info = folder / "info"
    info.mkdir(exist_ok=True)
    # Through no link: it could lead to somebody else's list.
    inside = os.open(info, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        opened = os.open("exclude", flags, 0o644, dir_fd=inside)
    finally:
        os.close(inside)
    with os.fdopen(opened, "r+b") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            return
        content = file.read()
        line = pattern.encode()
        if line in content.splitlines():
            return
        gap = b"" if not content or content.endswith(b"\n") else b"\n"
        _ = file.write(gap + line + b"\n")
