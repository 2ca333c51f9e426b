"""Keeps files of ours out of git without touching anything that is shared: by the repository's own `info/exclude`."""

import os
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1024 * 1024
"""A longer list of exclusions is left alone."""
POINTER_BYTES: Final = 4096


def keep_out_of_git(path: Path) -> None:
    """Name a file in the `info/exclude` of the repository that it lies in; without one nothing happens. Blocking.

    A worktree has the list of its main repository, a submodule one of its own. What cannot be written is left as it is:
    then git shows a file more.

    Args:
        path: Absolute; it need not be there yet.
    """
    for top in path.parents:
        marker = top / ".git"
        if marker.is_symlink():
            return
        if marker.exists():
            _exclude(marker, f"/{path.relative_to(top).as_posix()}")
            return


def _exclude(marker: Path, pattern: str) -> None:
    try:
        folder = marker if marker.is_dir() else _pointed(marker)
        if folder is not None:
            _add(folder / "info" / "exclude", pattern)
    except (OSError, ValueError):
        return


def _pointed(marker: Path) -> Path | None:
    """Follow the `.git` file of a worktree or submodule to the folder that holds its list."""
    words = _head(marker)
    if not words.startswith("gitdir:"):
        return None
    folder = marker.parent / words.removeprefix("gitdir:").strip()
    common = folder / "commondir"
    if common.is_file():
        folder /= _head(common).strip()
    folder = Path(os.path.normpath(folder))
    # Whatever a file of a project says: only what git has made is written to.
    return folder if (folder / "HEAD").is_file() and (folder / "objects").is_dir() else None


def _head(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(POINTER_BYTES).decode("utf-8", "strict")


def _add(exclude: Path, pattern: str) -> None:
    exclude.parent.mkdir(exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(exclude, flags, 0o644), "r+b") as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            return
        known = file.read()
        line = pattern.encode()
        if line in known.splitlines():
            return
        gap = b"" if not known or known.endswith(b"\n") else b"\n"
        _ = file.write(gap + line + b"\n")
