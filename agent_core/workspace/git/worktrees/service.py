"""The worktrees of a user: made, listed, compared, merged and removed."""

import builtins
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import Clock
from agent_core.workspace.git.client import (
    Git,
    GitFailed,
    open_git,
    scratch_folder,
)
from agent_core.workspace.git.repository import (
    RepositoryUnusable,
    find_repository,
)
from agent_core.workspace.git.worktrees.access import OpenedWorktree, WorktreeAccess
from agent_core.workspace.git.worktrees.creation import check_base, fill, is_dirty
from agent_core.workspace.git.worktrees.included_files import copy_included, find_included
from agent_core.workspace.git.worktrees.kept_commit import find_tips, keep
from agent_core.workspace.git.worktrees.merge_into_checkout import merge_into
from agent_core.workspace.git.worktrees.records import WorktreeRecord, WorktreeRecords
from agent_core.workspace.git.worktrees.removal import (
    check_lock,
    count_ignored,
    delete_folder,
    forget_in_git,
    why_not_removed,
)
from agent_core.workspace.git.worktrees.trees import (
    EXECUTABLE,
    REGULAR,
    FileChange,
    Snapshot,
    changed_between,
    read_blobs,
    read_texts,
    staged_snapshot,
    take_snapshot,
)
from agent_core.workspace.git.worktrees.values import (
    BRANCHES,
    KEPT_REFS,
    MergedWorktree,
    RemovedWorktree,
    Worktree,
    WorktreeChange,
    WorktreeHolds,
    WorktreeOwners,
    WorktreeRefused,
    WorktreeStatus,
)


class Worktrees:
    """Worktrees in the user's data folder. Git runs on a shadow of the repository, and starts no program of it."""

    def __init__(
        self, folder: Path, *, env: Mapping[str, str], owners: WorktreeOwners, clock: Clock
    ) -> None:
        """Create the service; it has no state of its own.

        Args:
            folder: Folder of all worktrees; made at first use.
            env: The environment of the user.
            owners: Reports the sessions that work in a worktree.
            clock: Time.
        """
        self._records = WorktreeRecords(folder)
        self._access = WorktreeAccess(self._records, env=env)
        self._env = env
        self._owners = owners
        self._clock = clock

    async def create(self, root: Path, *, id_: str, owner: str, include: bool = False) -> Worktree:
        """Make a worktree of the commit that is checked out, on a new branch `tiller/<id>`.

        Changes that are not committed are not in it.

        Args:
            root: A folder in a checkout.
            id_: Lower-case letters, digits and hyphens, at most 64.
            owner: The session that works in it.
            include: Copy the ignored files that `.worktreeinclude` names.

        Raises:
            WorktreeRefused: It cannot be made there; the text says why.
            WorktreeUnknown: That cannot be an id.
        """
        await to_thread.run_sync(self._records.prepare)
        try:
            async with scratch_folder() as scratch:
                git = await open_git(
                    root, env=self._env, scratch=scratch, roots=(self._records.folder,)
                )
                files = await find_included(git, scratch) if include else ()
                made = await self._create(git, root, scratch, id_=id_, owner=owner)
                return await copy_included(made, files)
        except (RepositoryUnusable, GitFailed) as error:
            message = f"no worktree can be made: {error}"
            raise WorktreeRefused(message) from error

    async def _create(
        self, git: Git, root: Path, scratch: Path, *, id_: str, owner: str
    ) -> Worktree:
        repository = git.repository
        real = Path(await to_thread.run_sync(os.path.realpath, root))
        subfolder = PurePosixPath(real.relative_to(repository.root).as_posix())
        record = WorktreeRecord(
            id=id_,
            repository=str(repository.root),
            common_dir=await to_thread.run_sync(os.path.realpath, repository.common_dir),
            place="",
            base=await check_base(git, subfolder),
            owner=owner,
            process=await to_thread.run_sync(self._owners.this_process),
            created_ms=self._clock.now_ms(),
            subfolder="" if str(subfolder) == "." else str(subfolder),
            base_is_dirty=await is_dirty(git),
        )
        await to_thread.run_sync(self._records.claim, record)
        inner = scratch / "worktree"
        return self._records.worktree(
            await fill(git, self._records, record, env=self._env, scratch=inner)
        )

    async def assign(self, id_: str, *, owner: str) -> None:
        """Record the session that works in a worktree; this process has it open.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or its record cannot be used.
        """
        async with self._access.hold(id_):
            record = await to_thread.run_sync(self._records.load, id_)
            process = await to_thread.run_sync(self._owners.this_process)
            assigned = replace(record, owner=owner, process=process)
            await to_thread.run_sync(self._records.store, assigned)

    async def find(self, folder: Path) -> Worktree | None:
        """Return the worktree that a folder is in, also when it is missing; None: it is in none.

        Raises:
            WorktreeRefused: Its record cannot be read.
            WorktreeUnknown: The folder is where worktrees are, and there is no record of one.
        """
        id_ = await to_thread.run_sync(self._records.id_of, folder)
        if id_ is None:
            return None
        return self._records.worktree(await to_thread.run_sync(self._records.load, id_))

    async def get(self, id_: str) -> Worktree:
        """Return a worktree, also when its folder is missing.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or its record cannot be read.
        """
        return self._records.worktree(await to_thread.run_sync(self._records.load, id_))

    async def list(self, repository: Path | None) -> Sequence[WorktreeStatus]:
        """Return the worktrees with their state, by id.

        Args:
            repository: A folder in a checkout: only worktrees of its repository; None: all.

        Raises:
            RepositoryUnusable: The folder is in no repository.
        """
        common: str | None = None
        if repository is not None:
            found = await to_thread.run_sync(find_repository, repository, self._env)
            common = await to_thread.run_sync(os.path.realpath, found.common_dir)
        states: list[WorktreeStatus] = []
        for id_ in await to_thread.run_sync(lambda: builtins.list(self._records.ids())):
            record = await to_thread.run_sync(self._records.load, id_)
            if common is None or record.common_dir == common:
                states.append(await self._status(record))
        return states

    async def _status(self, record: WorktreeRecord) -> WorktreeStatus:
        worktree = self._records.worktree(record)
        active = await self._active(record, asking=None)
        try:
            async with self._access.opened(record.id) as opened:
                git = opened.git
                tips = await find_tips(git, id_=record.id)
                status = WorktreeStatus(
                    worktree=worktree, state="missing", active=active, own_commits=tips.own_of_head
                )
                if not opened.is_there:
                    return status
                listed = await git.output(
                    "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"
                )
                merged = record.merged
                if merged is not None:
                    snapshot = await take_snapshot(git, opened.index)
                    merged = snapshot.tree if snapshot.tree == merged else None
                return replace(
                    status,
                    state="ready",
                    changed_files=listed.count(b"\0"),
                    is_merged=merged is not None,
                )
        except (WorktreeRefused, RepositoryUnusable, GitFailed) as error:
            return WorktreeStatus(
                worktree=worktree, state="broken", active=active, problem=str(error)
            )

    async def diff(self, id_: str) -> str:
        """Return the unified diff from the base commit to what lies in a worktree, ignored files excepted.

        Files that are not text are named. Bytes that are not UTF-8 are surrogates.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or it cannot be read.
        """
        async with self._access.opened(id_) as opened:
            tree = (await opened.snapshot(opened.git)).tree
            patch = await opened.git.output(
                "diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv",
                "--find-renames", opened.record.base, tree,
            )  # fmt: skip
            return patch.decode("utf-8", "surrogateescape")

    async def changes(self, id_: str) -> Sequence[WorktreeChange]:
        """Return the files that differ from the base commit, with their texts.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or it cannot be read.
        """
        async with self._access.opened(id_) as opened:
            changes = await _changes(opened)
            versions = (one for change in changes for one in (change.old, change.new))
            texts = await read_texts(opened.git, [one.blob for one in versions if one is not None])
            return [_with_texts(change, texts) for change in changes]

    async def contents(self, id_: str, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return contents of files of a worktree or its base commit, by hash.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or it cannot be read.
        """
        if not blobs:
            return {}
        async with self._access.opened(id_) as opened:
            _ = await opened.snapshot(opened.git)
            return await read_blobs(opened.git, blobs)

    async def keep_as_merged(self, id_: str) -> None:
        """Record that everything in a worktree was merged; it can be removed then while nothing in it changes.

        Raises:
            WorktreeUnknown, WorktreeRefused: There is none, or it cannot be read.
        """
        async with self._access.hold(id_), self._access.opened(id_) as opened:
            git = opened.git.storing()
            await self._keep_as_merged(opened, git, await opened.snapshot(git))

    async def _keep_as_merged(self, opened: OpenedWorktree, git: Git, snapshot: Snapshot) -> None:
        id_ = opened.record.id
        _ = await keep(git, snapshot, await find_tips(git, id_=id_), id_=id_)
        merged = replace(opened.record, merged=snapshot.tree)
        await to_thread.run_sync(self._records.store, merged)

    async def merge(self, id_: str) -> MergedWorktree:
        """Apply the changes of a worktree to the files of the checkout that it was made from: all or none.

        Files that changed in both are merged by three texts (decision 0030). Nothing is committed or staged. The merged
        content is kept below `refs/tiller/kept/`, so the worktree can be removed afterwards.

        Raises:
            MergeConflicted: Files changed in both in ways that exclude one another; nothing was changed.
            WorktreeUnknown, WorktreeRefused: There is none, or it or its checkout cannot be used.
        """
        async with self._access.hold(id_), self._access.opened(id_) as opened:
            checkout = await self._access.checkout(opened.record)
            git = opened.git.storing()
            snapshot = await opened.snapshot(git)
            changes = await changed_between(git, opened.record.base, snapshot.tree)
            plan = await merge_into(opened.git, checkout, changes, opened.scratch)
            await self._keep_as_merged(opened, git, snapshot)
            return MergedWorktree(
                written=sorted(plan.writes), unchanged=plan.unchanged, kept_ref=KEPT_REFS + id_
            )

    async def remove(
        self, id_: str, *, force: bool = False, asking: str | None = None
    ) -> RemovedWorktree:
        """Remove a worktree with its branch, after everything in it was kept below `refs/tiller/kept/`.

        Args:
            id_: The id.
            force: Remove it also if it holds what nothing else has. Never removed are those in which a session works, those
                with a lock of another program or person, and those whose content cannot be kept.
            asking: The session that asks: that it is open does not hinder the removal of its own worktree.

        Raises:
            WorktreeUnknown: There is none.
            WorktreeRefused: It was not removed; the text says what it holds, and what to do.
            GitFailed: Its content could not be kept; it was not removed.
        """
        async with self._access.hold(id_):
            await to_thread.run_sync(self._access.move_back, id_)
            async with self._access.opened(id_) as opened:
                record = opened.record
                active = await self._active(record, asking=asking)
                if active is not None:
                    message = f"{active} works in the worktree {id_!r}; it can be removed when that has ended"
                    raise WorktreeRefused(message)
                await check_lock(record)
                return await self._remove(opened, force=force)

    async def _remove(self, opened: OpenedWorktree, *, force: bool) -> RemovedWorktree:
        record, git = opened.record, opened.git.storing()
        id_, index = record.id, opened.index
        if opened.is_there:
            snapshot = await take_snapshot(git, index)
        else:
            snapshot = await staged_snapshot(git, index)
        tips = await find_tips(git, id_=id_)
        held = await why_not_removed(git, record, snapshot, tips)
        if held is not None and not force:
            raise WorktreeHolds(held)
        branch = await git.ask("rev-parse", "--verify", "--quiet", BRANCHES + id_)
        tip = None if branch.code else branch.output.decode().strip()
        ignored = await count_ignored(git) if opened.is_there else 0
        commit = await keep(git, snapshot, tips, id_=id_)
        async with self._access.moved_away(opened) as moved:
            if moved is not None:
                async with self._access.shadow(record, moved) as again:
                    now = await take_snapshot(again.storing(), index)
                    last = await find_tips(again, id_=id_)
                    if (snapshot, tips.head, tips.named) != (now, last.head, last.named):
                        message = f"the worktree {id_!r} was changed while it was removed, so it is still there; try again"
                        raise WorktreeRefused(message)
            await forget_in_git(git, opened.worktree.path, id_=id_, tip=tip)
        leftover = None if moved is None else await to_thread.run_sync(delete_folder, moved)
        await to_thread.run_sync(self._records.forget, id_)
        return RemovedWorktree(
            kept_ref=KEPT_REFS + id_, kept_commit=commit, ignored=ignored, leftover=leftover
        )

    async def _active(self, record: WorktreeRecord, *, asking: str | None) -> str | None:
        path = self._records.path(record.id)
        return await to_thread.run_sync(
            lambda: self._owners.active(
                path, owner=record.owner, process=record.process, asking=asking
            )
        )


async def _changes(opened: OpenedWorktree) -> Sequence[FileChange]:
    snapshot = await opened.snapshot(opened.git)
    return await changed_between(opened.git, opened.record.base, snapshot.tree)


def _with_texts(change: FileChange, texts: Mapping[str, str]) -> WorktreeChange:
    old, new = change.old, change.new
    kind = "added" if old is None else "deleted" if new is None else "modified"
    return WorktreeChange(
        path=change.path,
        kind=kind,
        old_text=None if old is None else texts.get(old.blob),
        new_text=None if new is None else texts.get(new.blob),
        is_text=all(one is None or one.blob in texts for one in (old, new)),
        old_blob=None if old is None else old.blob,
        new_blob=None if new is None else new.blob,
        is_executable=new is not None and new.mode == EXECUTABLE,
        is_regular=all(one is None or one.mode in REGULAR for one in (old, new)),
    )
