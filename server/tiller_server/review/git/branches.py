"""Makes a branch in a repository. Git itself works on a shadow of it, so the ref is written here."""

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

import anyio.to_thread

from agent_core.kernel.errors import UsageError
from agent_core.workspace.git.client import Git, GitFailed

HEADS: Final = "refs/heads/"
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


async def create_branch(git: Git, name: str, commit: str) -> None:
    """Create a branch that is not there yet.

    Args:
        git: Of the repository.
        name: Without `refs/heads/`.
        commit: Its hash; the repository has it already.

    Raises:
        UsageError: It is no name of a branch, or there is one of that name.
        GitFailed: It cannot be written.
    """
    ref = await check_branch(git, name)
    there = _taken(name)
    # In the shadow first: Git knows which names stand in each other's way, packed ones among them. The empty old value
    # means: only when there is no such branch.
    if (await git.ask("update-ref", ref, commit, "")).code:
        raise UsageError(there)
    try:
        await anyio.to_thread.run_sync(_write, git.repository.common_dir, ref, commit)
    except FileExistsError:
        raise UsageError(there) from None
    except OSError as error:
        message = f"the branch {name!r} cannot be written ({error.strerror})"
        raise GitFailed(message) from error


async def check_branch(git: Git, name: str) -> str:
    """Check that a branch can be created, and return its ref.

    Raises:
        UsageError: It is no name of a branch, or there is one of that name.
    """
    ref = f"{HEADS}{name}"
    if (await git.ask("check-ref-format", ref)).code:
        message = f"{name!r} is no name of a branch; give another with --fix-to"
        raise UsageError(message)
    if not (await git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", ref)).code:
        raise UsageError(_taken(name))
    return ref


def _taken(name: str) -> str:
    return f"the branch {name!r} is there already, and stays as it is; name another with --fix-to"


def _write(common_dir: Path, ref: str, commit: str) -> None:
    """Write a loose ref under git's own lock, through no link.

    Raises:
        FileExistsError: It is there, or somebody is writing it.
        OSError: It cannot be written.
    """
    path = PurePosixPath(ref)
    folder = os.open(common_dir, FOLDER)
    try:
        for part in path.parts[:-1]:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder)
            inner = os.open(part, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        lock = f"{path.name}.lock"
        file = os.open(lock, NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(file, "w", encoding="ascii") as opened:
                _ = opened.write(f"{commit}\n")
            os.link(lock, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            os.unlink(lock, dir_fd=folder)
    finally:
        os.close(folder)
