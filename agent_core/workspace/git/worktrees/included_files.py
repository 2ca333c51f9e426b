"""Copies ignored files that `.worktreeinclude` names into a new worktree; links are not followed, and nothing is overwritten."""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel.errors import TillerError
from agent_core.kernel.text import format_size
from agent_core.workspace.files.disk.gate.folder_gate import (
    FolderGate,
    best_gate,
    check_names,
    enter_root,
)
from agent_core.workspace.files.text import read_plain
from agent_core.workspace.git.client import Git
from agent_core.workspace.git.worktrees.values import Worktree, WorktreeRefused

INCLUDE: Final = ".worktreeinclude"
MOST_PATTERN_BYTES: Final = 65_536
MOST_FILES: Final = 1_000
MOST_FILE_BYTES: Final = 16 * 1024 * 1024
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all files together."""


async def find_included(git: Git, scratch: Path) -> Sequence[str]:
    """Return the ignored files that fit `.worktreeinclude` at the top of a checkout, from the top.

    Args:
        git: Of the checkout.
        scratch: A private folder.

    Raises:
        WorktreeRefused: There is no such file, it cannot be read, or it names too many files.
    """
    root = git.repository.root
    patterns = await to_thread.run_sync(_patterns, root)
    copied = scratch / "include"
    _ = await to_thread.run_sync(copied.write_bytes, patterns)
    named = await _untracked(git.at(root), f"--exclude-from={copied}")
    ignored = set(await _untracked(git.at(root), "--exclude-standard")) if named else set[str]()
    files = tuple(path for path in named if path in ignored)
    if len(files) > MOST_FILES:
        message = f"{INCLUDE} in {str(root)!r} names {len(files):,} ignored files, and at most {MOST_FILES:,} are copied; name fewer"
        raise WorktreeRefused(message)
    return files


async def _untracked(git: Git, excluded: str) -> Sequence[str]:
    """Return the untracked files that patterns exclude. Repositories inside of the checkout are not looked into."""
    listed = await git.output("ls-files", "-z", "--others", "--ignored", excluded)
    paths = map(os.fsdecode, listed.split(b"\0"))
    return [path for path in paths if path and not path.endswith("/")]


def _patterns(root: Path) -> bytes:
    try:
        return read_plain(root / INCLUDE, most_bytes=MOST_PATTERN_BYTES)
    except FileNotFoundError as error:
        message = f"there is no {INCLUDE} in {str(root)!r}; write one that names the ignored files to copy, as .gitignore does"
        raise WorktreeRefused(message) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        message = f"{INCLUDE} in {str(root)!r} cannot be read ({why})"
        raise WorktreeRefused(message) from error


async def copy_included(worktree: Worktree, files: Sequence[str]) -> Worktree:
    """Copy files of the checkout into a worktree; the value lists those that cannot be copied, each with its reason.

    Args:
        worktree: The worktree.
        files: Paths from the top.
    """
    if not files:
        return worktree
    try:
        return await to_thread.run_sync(partial(_copy_all, worktree, files))
    except OSError as error:
        # The checkout was moved meanwhile.
        return replace(worktree, left_out=tuple(f"{path} ({error.strerror})" for path in files))


def _copy_all(worktree: Worktree, files: Sequence[str]) -> Worktree:
    gate, left_bytes = best_gate(), MOST_BYTES
    included: list[str] = []
    left_out: list[str] = []
    with ExitStack() as stack:
        source = enter_root(gate, worktree.repository)
        _ = stack.callback(os.close, source)
        target = enter_root(gate, worktree.path)
        _ = stack.callback(os.close, target)
        for path in files:
            try:
                left_bytes -= _copy(gate, source, target, path, most_bytes=left_bytes)
                included.append(path)
            except (OSError, ValueError, TillerError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                left_out.append(f"{path} ({why})")
    return replace(worktree, included=tuple(included), left_out=tuple(left_out))


def _copy(gate: FolderGate, source: int, target: int, path: str, *, most_bytes: int) -> int:
    """Copy one file with its mode; return its size.

    Raises:
        OSError: It cannot be read, there is a link on the way, or the worktree has something in its place.
        ValueError: It is no regular file, or too large.
        PathRefused: It has no usable name.
    """
    *parents, name = path.split("/")
    check_names((*parents, name), Path(path))
    with ExitStack() as stack:
        folder = gate.enter(source, parents)
        _ = stack.callback(os.close, folder)
        content, mode = _read(folder, name, most_bytes=most_bytes)
        _make_folders(gate, target, parents)
        folder = gate.enter(target, parents)
        _ = stack.callback(os.close, folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        written = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            with open(written, "wb") as file:  # noqa: PTH123 - a descriptor
                _ = file.write(content)
                os.fchmod(written, mode)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise
    return len(content)


def _read(folder: int, name: str, *, most_bytes: int) -> tuple[bytes, int]:
    """Return the content and the mode of a file; a pipe in its place is not waited for."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            message = "no regular file"
            raise ValueError(message)
        limit = min(MOST_FILE_BYTES, most_bytes)
        content = file.read(limit + 1) if about.st_size <= limit else b""
        if max(len(content), about.st_size) > limit:
            which = "a file" if limit == MOST_FILE_BYTES else "all files together"
            most = MOST_FILE_BYTES if limit == MOST_FILE_BYTES else MOST_BYTES
            message = f"more than {format_size(most)}, the limit of {which}"
            raise ValueError(message)
        return content, stat.S_IMODE(about.st_mode) & 0o777


def _make_folders(gate: FolderGate, target: int, parents: Sequence[str]) -> None:
    for depth, name in enumerate(parents):
        folder = gate.enter(target, parents[:depth])
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        finally:
            os.close(folder)
