"""Prepares a change for review: one diff, and what is left out of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git, GitFailed
from tiller_server.review.findings.result import LeftOut
from tiller_server.review.git.diff import DIFF, ChangedFile, parse_diff
from tiller_server.review.git.file_filter import ReviewFileFilter, sort_out
from tiller_server.review.git.revisions import Revisions

ASKED: Final = ("linguist-generated", "linguist-vendored", "diff")


class ReviewChangeSet(Value, frozen=True, kw_only=True):
    """Files to review, and files that are left out."""

    files: tuple[ChangedFile, ...]
    left_out: tuple[LeftOut, ...]

    def file(self, path: str) -> ChangedFile | None:
        """Return a file that is looked at, by its new name."""
        return next((file for file in self.files if file.path == path), None)


async def prepare_change(
    revisions: Revisions, *, scope: ReviewFileFilter, scratch: Path
) -> ReviewChangeSet:
    """Compare the head with the merge base.

    Args:
        revisions: Revisions to compare.
        scope: Which files are wanted.
        scratch: Private folder, in which an index of Git is created.

    Raises:
        GitFailed: Git cannot compare them.
    """
    git = revisions.git
    own_index = git.knowing(GIT_INDEX_FILE=str(scratch / "attributes-index"))
    listed: list[tuple[ChangedFile, ...]] = []
    rules: list[bool] = []

    async def compare() -> None:
        listed.append(await read_diff(git, revisions.merge_base, revisions.head.sha))

    async def load() -> None:
        rules.append(await _load_attributes(own_index, revisions.merge_base))

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(compare)
            group.start_soon(load)
    except BaseExceptionGroup as failed:
        if isinstance(first := failed.exceptions[0], GitFailed):
            raise first from failed
        raise
    files = listed[0]
    paths = [file.path for file in files] if rules[0] else []
    attributes = await _read_attributes(own_index, paths)
    wanted, left_out = await anyio.to_thread.run_sync(
        lambda: sort_out(files, attributes=attributes, scope=scope)
    )
    return ReviewChangeSet(files=wanted, left_out=left_out)


async def read_diff(git: Git, old: str, new: str) -> tuple[ChangedFile, ...]:
    """Compare two commits or trees.

    Raises:
        GitFailed: One of them is not there.
    """
    output = await git.output(*DIFF, old, new)
    return await anyio.to_thread.run_sync(parse_diff, output)


async def _load_attributes(git: Git, commit: str) -> bool:
    """Write the `.gitattributes` files of a commit into the index; return whether there are any.

    The commit is the base: attributes that a change sets for itself do not count.

    Args:
        git: With an index of its own (`GIT_INDEX_FILE`), which gets nothing else.
        commit: The commit of the files.
    """
    listed = await git.output("ls-tree", "-r", "-z", "--full-tree", commit)
    if b".gitattributes\0" not in listed:
        return False
    rules = b"".join(
        entry + b"\0"
        for entry in listed.split(b"\0")
        if entry.endswith((b"\t.gitattributes", b"/.gitattributes"))
    )
    if rules:
        _ = await git.output("update-index", "-z", "--index-info", stdin=rules)
    return bool(rules)


async def _read_attributes(git: Git, paths: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the attributes of each path by the loaded rules; unspecified attributes are left out."""
    if not paths:
        return {}
    asked = "\0".join(paths).encode("utf-8", "surrogateescape") + b"\0"
    said = await git.output("check-attr", "--cached", "-z", "--stdin", *ASKED, stdin=asked)
    fields = [word.decode("utf-8", "surrogateescape") for word in said.split(b"\0")]
    found: dict[str, dict[str, str]] = {}
    for place in range(0, len(fields) - 2, 3):
        path, name, value = fields[place : place + 3]
        if value != "unspecified":
            found.setdefault(path, {})[name] = value
    return found
