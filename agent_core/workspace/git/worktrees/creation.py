"""Makes a worktree: refuses what a worktree cannot hold, registers it, and fills it without running a program of the repository."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path, PurePosixPath
from typing import Final

from anyio import CancelScope, to_thread
from msgspec.structs import replace

from agent_core.workspace.git.client import Git, open_repository
from agent_core.workspace.git.repository import (
    MARKER,
    GitRepository,
    read_part,
    registered_worktree,
)
from agent_core.workspace.git.worktrees.records import WorktreeRecord, WorktreeRecords
from agent_core.workspace.git.worktrees.trees import GITLINK
from agent_core.workspace.git.worktrees.values import BRANCHES, WorktreeRefused

TRUE: Final = frozenset({"true", "yes", "on", "1"})
ATTRIBUTES: Final = ".gitattributes"
MOST_ATTRIBUTES_BYTES: Final = 16_777_216
MOST_POINTER_BYTES: Final = 8_192
_FILTER: Final = re.compile(rb"^[ \t]*[^#\s].*[ \t]filter=(\S+)", re.MULTILINE)


async def check_base(git: Git, subfolder: PurePosixPath) -> str:
    """Return the commit that a worktree can begin from.

    Args:
        git: Of the checkout.
        subfolder: The folder in which work is to begin, from the top.

    Raises:
        WorktreeRefused: A worktree of the repository would lack something.
    """
    values = git.repository.values
    top = str(git.repository.root)
    if values.get("core.bare", "").lower() in TRUE:
        message = (
            f"{top!r} is a bare repository, which has no files to work on; clone it and work there"
        )
        raise WorktreeRefused(message)
    if values.get("core.sparsecheckout", "").lower() in TRUE:
        message = f"{top!r} is a sparse checkout, which a worktree would not be; work without isolation, or run `git sparse-checkout disable`"
        raise WorktreeRefused(message)
    if "extensions.partialclone" in values:
        message = f"{top!r} is a partial clone, and what it lacks is not fetched; work without isolation, or use a clone that was made without --filter"
        raise WorktreeRefused(message)
    answer = await git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if answer.code:
        message = f"{top!r} has no commit yet, so there is nothing to make a worktree from; commit something first"
        raise WorktreeRefused(message)
    base = answer.output.decode().strip()
    await _check_tree(git, base, subfolder)
    return base


async def _check_tree(git: Git, base: str, subfolder: PurePosixPath) -> None:
    top = str(git.repository.root)
    rows = (await git.output("ls-tree", "-r", "-z", "--full-tree", base)).split(b"\0")
    files = dict(_file(row) for row in rows if row)
    links = [path for path, (mode, _) in files.items() if mode == GITLINK]
    if links:
        message = f"{top!r} has submodules ({links[0]}), which a worktree would not have; work without isolation"
        raise WorktreeRefused(message)
    if str(subfolder) != "." and not any(path.startswith(f"{subfolder}/") for path in files):
        message = f"the folder {str(subfolder)!r} has no file in the last commit, so a worktree would not have it; commit it first, or work from {top!r}"
        raise WorktreeRefused(message)
    blobs = {path: blob for path, (_, blob) in files.items() if _is_attributes(path)}
    contents = {path: await git.output("cat-file", "blob", blob) for path, blob in blobs.items()}
    own = git.repository.common_dir / "info" / "attributes"
    contents["info/attributes"] = await to_thread.run_sync(_read, own)
    for path, content in contents.items():
        if found := _FILTER.search(content):
            name = os.fsdecode(found[1])
            what = "with Git LFS" if name == "lfs" else f"through the filter {name!r}"
            message = f"{top!r} stores files {what} ({path}), and no program of a repository is run to fill a worktree; work without isolation"
            raise WorktreeRefused(message)


def _file(row: bytes) -> tuple[str, tuple[str, str]]:
    about, _, path = row.partition(b"\t")
    mode, _, blob = about.decode().split(" ")
    return os.fsdecode(path), (mode, blob)


def _is_attributes(path: str) -> bool:
    return path == ATTRIBUTES or path.endswith(f"/{ATTRIBUTES}")


def _read(path: Path) -> bytes:
    try:
        return read_part(path, most_bytes=MOST_ATTRIBUTES_BYTES)
    except OSError:
        return b""


async def fill(
    git: Git,
    records: WorktreeRecords,
    record: WorktreeRecord,
    *,
    env: Mapping[str, str],
    scratch: Path,
) -> WorktreeRecord:
    """Register a worktree and write its files; on failure nothing of it is left.

    Args:
        git: Of the checkout.
        records: Has the claimed record.
        record: The record.
        env: The environment of the user.
        scratch: A private folder.

    Raises:
        WorktreeRefused: Git does not make it.
    """
    path = records.path(record.id)
    undo = AsyncExitStack()
    _ = undo.push_async_callback(to_thread.run_sync, records.forget, record.id)
    try:
        # What has this name from here on is ours; git accepts an empty folder.
        await to_thread.run_sync(path.mkdir, 0o700)
        _ = undo.push_async_callback(_delete, path)
        branch = BRANCHES + record.id
        await _in_place(git, "update-ref", branch, record.base, "0" * len(record.base))
        _ = undo.push_async_callback(git.ask_in_place, "update-ref", "-d", branch, record.base)
        _ = undo.push_async_callback(
            git.ask_in_place, "worktree", "remove", "--force", "--force", str(path)
        )
        registered = await _registered(git, record, path)
        await to_thread.run_sync(records.store, registered)
        repository = await _repository(registered, path)
        inner = await open_repository(repository, env=env, scratch=scratch, roots=(records.folder,))
        filling = inner.knowing(GIT_INDEX_FILE=str(registered.git_dir / "index"))
        _ = await filling.output("read-tree", "--reset", "-u", record.base)
    except BaseException as error:
        with CancelScope(shield=True):
            await undo.aclose()
        if isinstance(error, OSError):
            message = f"the worktree {str(path)!r} cannot be made ({error.strerror})"
            raise WorktreeRefused(message) from error
        raise
    return registered


async def _registered(git: Git, record: WorktreeRecord, path: Path) -> WorktreeRecord:
    """Have git register a worktree, locked and on its branch; return the record with its place."""
    await _in_place(
        git, "worktree", "add", "--no-checkout", "--detach",
        "--lock", "--reason", record.lock_reason, str(path), record.base,
    )  # fmt: skip
    pointer = await to_thread.run_sync(
        lambda: read_part(path / MARKER, most_bytes=MOST_POINTER_BYTES)
    )
    place = Path(os.fsdecode(pointer.strip().removeprefix(b"gitdir: ")))
    registered = replace(record, place=place.name)
    inner = git.of(await _repository(registered, path))
    await _in_place(inner, "symbolic-ref", "HEAD", BRANCHES + record.id)
    return registered


async def _repository(record: WorktreeRecord, path: Path) -> GitRepository:
    common = Path(record.common_dir)
    return await to_thread.run_sync(
        lambda: registered_worktree(path, git_dir=record.git_dir, common_dir=common)
    )


async def _in_place(git: Git, *arguments: str) -> None:
    answer = await git.ask_in_place(*arguments)
    if answer.code:
        message = f"Git does not make the worktree ({answer.errors})"
        raise WorktreeRefused(message)


async def _delete(path: Path) -> None:
    """Delete the folder of a worktree that was not finished: it has nothing but files of its base commit."""
    _ = await to_thread.run_sync(lambda: shutil.rmtree(path, ignore_errors=True))


async def is_dirty(git: Git) -> bool:
    """Return whether a checkout has changes that are not committed, untracked files included."""
    status = await git.output("status", "--porcelain=v1", "-z", "--untracked-files=all")
    return bool(status)
