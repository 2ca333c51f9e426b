"""The files of a worktree as objects of git: a snapshot of everything in it, and what differs between two trees."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git
from agent_core.workspace.git.repository import MARKER
from agent_core.workspace.git.worktrees.values import WorktreeRefused

GITLINK: Final = "160000"
EXECUTABLE: Final = "100755"
REGULAR: Final = frozenset({"100644", EXECUTABLE})
MOST_TEXT_BYTES: Final = 4_194_304
"""A larger file counts as one that is not text."""
EMPTY_BLOBS: Final = frozenset(
    {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    }
)
"""The hashes of an empty file."""
UNMERGED: Final = ".tiller-unmerged"
"""Folder of the kept index for the versions of files whose merge was not finished."""


class Snapshot(Value, frozen=True, kw_only=True):
    """Everything that is in a worktree, except ignored files."""

    tree: str
    """The files as they lie on the disk."""
    index: str
    """The files as they are staged."""


class TreeFile(Value, frozen=True, kw_only=True):
    """A file in a tree."""

    mode: str
    blob: str


class FileChange(Value, frozen=True, kw_only=True):
    """A file that differs between two trees; not None on both sides."""

    path: str
    """With surrogates for bytes that are not UTF-8."""
    old: TreeFile | None
    new: TreeFile | None


async def take_snapshot(git: Git, index: Path) -> Snapshot:
    """Write what lies in a worktree as trees. Neither its index nor its HEAD changes.

    The index that git keeps is believed in nothing but the names and the staged contents: a command in the worktree may
    have marked files as unchanged, or written times that hide a change.

    Args:
        git: At the worktree; objects are written where it writes them.
        index: An index of ours for the files on the disk. One that is there from an earlier snapshot is used again.

    Raises:
        WorktreeRefused: Something in it cannot be written as an object.
        GitFailed: Git cannot read a file.
    """
    nested = await to_thread.run_sync(nested_repository, git.folder)
    if nested is not None:
        message = f"the worktree has a repository of its own in {nested!r}, which cannot be kept in a commit; move it elsewhere first"
        raise WorktreeRefused(message)
    staged = await _staged(git, index)
    own = git.knowing(GIT_INDEX_FILE=str(index))
    if not await to_thread.run_sync(index.exists):
        _ = await own.output("read-tree", staged)
    _ = await own.output("add", "--all")
    return Snapshot(tree=await own.text("write-tree"), index=staged)


async def staged_snapshot(git: Git, index: Path) -> Snapshot:
    """Return the snapshot of a worktree whose folder is missing: only what was staged is left.

    Args:
        git: With a shadow of its repository; objects are written where it writes them.
        index: The path of an index of ours.

    Raises:
        WorktreeRefused, GitFailed: As `take_snapshot` raises them.
    """
    staged = await _staged(git, index)
    return Snapshot(tree=staged, index=staged)


def nested_repository(top: Path) -> str | None:
    """Return the folder of a repository below the top, with slashes; None: there is none. Blocking."""
    for at, folders, files in os.walk(top):
        if at != str(top) and (MARKER in folders or MARKER in files):
            return Path(at).relative_to(top).as_posix()
        if at == str(top) and MARKER in folders:
            return "."
    return None


async def _staged(git: Git, index: Path) -> str:
    """Return the tree of the index, with all versions of files whose merge was not finished."""
    rows = [row for row in (await git.output("ls-files", "-z", "--stage")).split(b"\0") if row]
    if any(row.startswith(GITLINK.encode()) for row in rows):
        message = "the worktree has a submodule, whose content cannot be kept in a commit; remove the submodule first"
        raise WorktreeRefused(message)
    if not any(_stage(row) for row in rows):
        return await git.text("write-tree")
    if any(row.split(b" ")[1].decode() in EMPTY_BLOBS for row in rows):
        # Marks of files that are only intended to be added name it, and it may not be stored.
        _ = await git.output("hash-object", "-w", "--stdin", stdin=b"")
    own = git.knowing(GIT_INDEX_FILE=f"{index}-staged")
    _ = await own.output("read-tree", "--empty")
    _ = await own.output("update-index", "-z", "--index-info", stdin=b"".join(map(_stored, rows)))
    return await own.text("write-tree")


def _stage(row: bytes) -> int:
    return int(row.partition(b"\t")[0].rpartition(b" ")[2])


def _stored(row: bytes) -> bytes:
    about, _, path = row.partition(b"\t")
    entry, _, stage = about.rpartition(b" ")
    folder = b"" if stage == b"0" else f"{UNMERGED}/{stage.decode()}/".encode()
    return entry + b"\t" + folder + path + b"\0"


async def changed_between(git: Git, old: str, new: str) -> Sequence[FileChange]:
    """Return the files that differ between two trees, in the order of their paths; a renamed file is two."""
    output = await git.output(
        "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new
    )
    parts = output.split(b"\0")
    return [
        _change(os.fsdecode(about), os.fsdecode(path))
        for about, path in zip(parts[::2], parts[1::2], strict=False)
        if about.startswith(b":")
    ]


def _change(about: str, path: str) -> FileChange:
    old_mode, new_mode, old, new, _ = about.removeprefix(":").split(" ")
    return FileChange(path=path, old=_version(old_mode, old), new=_version(new_mode, new))


def _version(mode: str, blob: str) -> TreeFile | None:
    return None if mode == "000000" else TreeFile(mode=mode, blob=blob)


async def read_texts(git: Git, blobs: Iterable[str]) -> Mapping[str, str]:
    """Return the texts of blobs by hash; those that are not text, or too large, are left out."""
    names = list(dict.fromkeys(blobs))
    listed = await git.output("cat-file", "--batch-check", stdin=_lines(names))
    small = [
        name
        for name, row in zip(names, listed.decode().splitlines(), strict=True)
        if row.rpartition(" ")[2].isdecimal() and int(row.rpartition(" ")[2]) <= MOST_TEXT_BYTES
    ]
    texts = {name: _text(content) for name, content in (await read_blobs(git, small)).items()}
    return {name: text for name, text in texts.items() if text is not None}


async def read_blobs(git: Git, names: Sequence[str]) -> Mapping[str, bytes]:
    """Return the content of blobs by hash; all of them exist."""
    output = await git.output("cat-file", "--batch", stdin=_lines(names))
    contents: dict[str, bytes] = {}
    at = 0
    for name in names:
        end = output.index(b"\n", at)
        size = int(output[at:end].rpartition(b" ")[2])
        contents[name] = output[end + 1 : end + 1 + size]
        at = end + size + 2
    return contents


def _lines(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
