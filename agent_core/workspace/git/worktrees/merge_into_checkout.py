"""Merges what a worktree changed into the files of its checkout: everything or nothing, and without a commit."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from anyio import to_thread

from agent_core.kernel.values import Value
from agent_core.workspace.diff.merge import merge
from agent_core.workspace.git.client import Git, GitFailed
from agent_core.workspace.git.worktrees.trees import (
    REGULAR,
    FileChange,
    TreeFile,
    read_texts,
)
from agent_core.workspace.git.worktrees.values import MergeConflicted

SHOWN_PATHS = 8


class MergePlan(Value, frozen=True, kw_only=True):
    """The effects of a merge."""

    writes: Mapping[str, TreeFile | None]
    """The files to write; None: to delete."""
    unchanged: Sequence[str]
    """Files that are already as wanted."""


async def merge_into(
    git: Git, checkout: Path, changes: Sequence[FileChange], scratch: Path
) -> MergePlan:
    """Apply changes to the files of a checkout; its index does not change.

    Git reads the files and writes them, from one tree to another one: it checks all before it writes the first, and
    writes through no link.

    Args:
        git: With a shadow that has the objects of the changes.
        checkout: The top folder of the checkout.
        changes: From the base commit to the worktree.
        scratch: A private folder for the index of the merge.

    Raises:
        MergeConflicted: Nothing was changed.
    """
    index = scratch / "merge-index"
    there = git.at(checkout).knowing(GIT_INDEX_FILE=str(index))
    _ = await there.output("read-tree", "--empty")
    if in_the_way := await to_thread.run_sync(lambda: sorted(_in_the_way(checkout, changes))):
        raise _conflict(in_the_way, checkout)
    paths = b"".join(os.fsencode(change.path) + b"\0" for change in changes)
    _ = await there.output("update-index", "-z", "--add", "--remove", "--stdin", stdin=paths)
    now = _entries(await there.output("ls-files", "-z", "--stage"))
    plan = await _plan(git, changes, now, checkout)
    if plan.writes:
        await _write(there, plan, index)
    return plan


def _in_the_way(checkout: Path, changes: Sequence[FileChange]) -> Iterator[str]:
    """Yield the changed files at whose place something is that git does not overwrite for us. Blocking."""
    deleted = {change.path for change in changes if change.new is None}
    for change in changes:
        parents = [str(parent) for parent in PurePosixPath(change.path).parents][:-1]
        there = _mode(checkout / change.path)
        has_folder = there is not None and stat.S_ISDIR(there)
        modes = [(parent, _mode(checkout / parent)) for parent in parents]
        if has_folder or any(
            mode is not None and not stat.S_ISDIR(mode) and parent not in deleted
            for parent, mode in modes
        ):
            yield change.path


def _mode(path: Path) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


async def _plan(
    git: Git, changes: Sequence[FileChange], now: Mapping[str, TreeFile], checkout: Path
) -> MergePlan:
    writes: dict[str, TreeFile | None] = {}
    unchanged: list[str] = []
    both: list[tuple[str, TreeFile, TreeFile, TreeFile]] = []
    conflicts: list[str] = []
    for change in changes:
        path, old, new, there = change.path, change.old, change.new, now.get(change.path)
        if there == new:
            unchanged.append(path)
        elif there == old:
            writes[path] = new
        elif old is None or new is None or there is None or not _are_regular(old, new, there):
            conflicts.append(path)
        else:
            both.append((path, old, new, there))
    texts = await read_texts(git, (one.blob for _, *versions in both for one in versions))
    for path, old, new, there in both:
        merged = await _merged(git, texts, old, new, there)
        if merged is None:
            conflicts.append(path)
        elif merged == there:
            unchanged.append(path)
        else:
            writes[path] = merged
    if conflicts:
        raise _conflict(sorted(conflicts), checkout)
    return MergePlan(writes=writes, unchanged=unchanged)


def _are_regular(*versions: TreeFile) -> bool:
    return all(one.mode in REGULAR for one in versions)


async def _merged(
    git: Git, texts: Mapping[str, str], old: TreeFile, new: TreeFile, there: TreeFile
) -> TreeFile | None:
    """Return a file with the changes of both sides; None: they exclude one another."""
    mode = there.mode if new.mode == old.mode else new.mode
    if old.blob in (new.blob, there.blob) or new.blob == there.blob:
        blob = there.blob if new.blob == old.blob else new.blob
        return TreeFile(mode=mode, blob=blob)
    if any(one.blob not in texts for one in (old, new, there)):
        return None
    sides = (texts[old.blob], texts[new.blob], texts[there.blob])
    result = await to_thread.run_sync(merge, *sides)
    if result.conflicts:
        return None
    blob = await git.output("hash-object", "-w", "--stdin", stdin=result.text.encode())
    return TreeFile(mode=mode, blob=blob.decode().strip())


async def _write(there: Git, plan: MergePlan, index: Path) -> None:
    before = await there.text("write-tree")
    wanted = index.with_name("wanted-index")
    _ = await to_thread.run_sync(shutil.copyfile, index, wanted)
    after = there.knowing(GIT_INDEX_FILE=str(wanted))
    # What is deleted comes first: a file may make room for a folder.
    rows = sorted(plan.writes.items(), key=lambda item: item[1] is not None)
    info = b"".join(_row(path, version, width=len(before)) for path, version in rows)
    _ = await after.output("update-index", "-z", "--index-info", stdin=info)
    try:
        _ = await there.output("read-tree", "-m", "-u", before, await after.text("write-tree"))
    except GitFailed as error:
        message = f"the changes cannot be written to {str(there.folder)!r}: {error}"
        raise MergeConflicted(message, paths=sorted(plan.writes)) from error


def _row(path: str, version: TreeFile | None, *, width: int) -> bytes:
    about = f"0 {'0' * width}" if version is None else f"{version.mode} {version.blob}"
    return about.encode() + b"\t" + os.fsencode(path) + b"\0"


def _entries(listed: bytes) -> Mapping[str, TreeFile]:
    found: dict[str, TreeFile] = {}
    for row in filter(None, listed.split(b"\0")):
        about, _, path = row.partition(b"\t")
        mode, blob, _ = about.decode().split(" ")
        found[os.fsdecode(path)] = TreeFile(mode=mode, blob=blob)
    return found


def _conflict(paths: Sequence[str], checkout: Path) -> MergeConflicted:
    named = ", ".join(paths[:SHOWN_PATHS])
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    message = f"nothing was merged: {named}{more} changed in {str(checkout)!r} too, and not in the same way; change them there as you want them, or commit in the worktree and use `git merge`"
    return MergeConflicted(message, paths=paths)
