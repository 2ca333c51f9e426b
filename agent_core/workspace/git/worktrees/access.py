"""Opens a worktree for Git: one command at a time, on a shadow of its repository."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import CancelScope, to_thread
from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git, open_repository, scratch_folder
from agent_core.workspace.git.repository import (
    RepositoryUnusable,
    find_repository,
    registered_worktree,
)
from agent_core.workspace.git.worktrees.creation import TRUE
from agent_core.workspace.git.worktrees.records import WorktreeRecord, WorktreeRecords
from agent_core.workspace.git.worktrees.trees import Snapshot, take_snapshot
from agent_core.workspace.git.worktrees.values import Worktree, WorktreeRefused


class OpenedWorktree(Value, frozen=True, kw_only=True):
    """A worktree with Git on a shadow of its repository."""

    record: WorktreeRecord
    worktree: Worktree
    git: Git
    scratch: Path
    """A private folder."""
    is_there: bool
    """Whether its folder is there."""

    @property
    def index(self) -> Path:
        """The index of ours for snapshots."""
        return self.scratch / "snapshot-index"

    async def snapshot(self, git: Git) -> Snapshot:
        """Write the files of the worktree as trees, to compare them.

        Args:
            git: At the worktree; objects are written where it writes them.

        Raises:
            WorktreeRefused: The folder is missing, or files are left out on purpose, or cannot be written.
        """
        id_, values = self.record.id, self.git.repository.values
        if not self.is_there:
            message = f"the folder {str(self.worktree.path)!r} of the worktree {id_!r} is missing; `tiller worktree remove {id_}` ends it"
            raise WorktreeRefused(message)
        if values.get("core.sparsecheckout", "").lower() in TRUE:
            message = f"the worktree {id_!r} was made a sparse checkout, so files are missing in it; run `git sparse-checkout disable` there first"
            raise WorktreeRefused(message)
        return await take_snapshot(git, self.index)


class WorktreeAccess:
    """Access to the worktrees of a user."""

    def __init__(self, records: WorktreeRecords, *, env: Mapping[str, str]) -> None:
        self._records = records
        self._env = env

    @asynccontextmanager
    async def hold(self, id_: str) -> AsyncGenerator[None]:
        """Hold the lock of a worktree.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or another command holds it.
        """
        lock = self._records.hold(id_)
        await to_thread.run_sync(lock.__enter__)
        try:
            yield
        finally:
            with CancelScope(shield=True):
                _ = await to_thread.run_sync(lock.__exit__, None, None, None)

    @asynccontextmanager
    async def opened(self, id_: str) -> AsyncGenerator[OpenedWorktree]:
        """Open a worktree.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or it cannot be used.
        """
        record = await to_thread.run_sync(self._records.load, id_)
        is_there = await to_thread.run_sync(self._records.is_there, id_)
        worktree = self._records.worktree(record)
        async with scratch_folder() as scratch, self.shadow(record, worktree.path) as git:
            yield OpenedWorktree(
                record=record,
                worktree=worktree,
                git=git if is_there else replace(git, folder=scratch),
                scratch=scratch,
                is_there=is_there,
            )

    @asynccontextmanager
    async def shadow(self, record: WorktreeRecord, folder: Path) -> AsyncGenerator[Git]:
        """Open Git on a shadow of the repository, with a folder as the files of the worktree.

        Raises:
            WorktreeRefused: The repository does not know the worktree any more.
        """
        path = self._records.path(record.id)
        common = Path(record.common_dir)
        try:
            repository = await to_thread.run_sync(
                lambda: registered_worktree(path, git_dir=record.git_dir, common_dir=common)
            )
        except RepositoryUnusable as error:
            message = f"the worktree {record.id!r} cannot be used: {error}; its files are in {str(path)!r}, copy what you need and delete the folder yourself"
            raise WorktreeRefused(message) from error
        async with scratch_folder() as scratch:
            roots = (self._records.folder, Path(record.repository))
            git = await open_repository(repository, env=self._env, scratch=scratch, roots=roots)
            yield git.at(folder)

    async def checkout(self, record: WorktreeRecord) -> Path:
        """Return the checkout that a worktree was made from.

        Raises:
            WorktreeRefused: It is not there any more, or it is of another repository now.
        """
        checkout = Path(record.repository)
        try:
            found = await to_thread.run_sync(find_repository, checkout, self._env)
        except RepositoryUnusable as error:
            message = f"the checkout of the worktree {record.id!r} cannot be used: {error}"
            raise WorktreeRefused(message) from error
        common = await to_thread.run_sync(os.path.realpath, found.common_dir)
        if found.root != checkout or common != record.common_dir:
            message = f"{str(checkout)!r} is not a checkout of the repository of the worktree {record.id!r} any more; merge its branch with Git"
            raise WorktreeRefused(message)
        return checkout

    @asynccontextmanager
    async def moved_away(self, opened: OpenedWorktree) -> AsyncGenerator[Path | None]:
        """Rename the folder of a worktree, so that nothing finds it while it is checked a last time; None: it is missing.

        On failure it gets its name back.
        """
        if not opened.is_there:
            yield None
            return
        moved = self._records.removing(opened.record.id)
        await to_thread.run_sync(os.rename, opened.worktree.path, moved)
        try:
            yield moved
        except BaseException:
            with CancelScope(shield=True):
                await to_thread.run_sync(self.move_back, opened.record.id)
            raise

    def move_back(self, id_: str) -> None:
        """Rename the folder of a removal that did not end back to its name. Blocking."""
        path, moved = self._records.path(id_), self._records.removing(id_)
        if os.path.lexists(moved) and not os.path.lexists(path):
            os.rename(moved, path)  # noqa: PTH104 - as the way there
