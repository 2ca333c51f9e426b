"""Prepares a change for review: one diff, and what is left out of it."""

from pathlib import Path

import anyio
import anyio.to_thread

from agent_core.kernel.values import Value
from tiller_server.review.errors import GitFailed
from tiller_server.review.findings.result import LeftOut
from tiller_server.review.git.attributes import load_attributes, read_attributes
from tiller_server.review.git.client import Git
from tiller_server.review.git.diff import DIFF, ChangedFile, parse_diff
from tiller_server.review.git.file_filter import ReviewFileFilter, sort_out
from tiller_server.review.git.revisions import Revisions


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
        rules.append(await load_attributes(own_index, revisions.merge_base))

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
    attributes = await read_attributes(own_index, paths)
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
