"""Worktrees of tasks: made for a task, compared, merged into the workspace and removed."""

import logging
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from agent_core.changes import Change, FileVersion
from agent_core.changes.history import ChangeSet
from agent_core.changes.values import keep
from agent_core.events import Event, TaskInfo, TaskUpdated
from agent_core.kernel import RunId, SessionId, ToolCallId
from agent_core.kernel.errors import FileMissing, TillerError, ToolError, UsageError, WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.checkpoints import Checkpoints
from agent_core.session.changes.file_reverter import FileReverter, is_open_text, write_together
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.context import SessionServices, WorkspaceContext
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.tools.given_task import GivenTask
from agent_core.session.tools.task_port import EDITS
from agent_core.session.tools.worktree_files import (
    ChangesExcluded,
    Found,
    Goal,
    WorktreeFile,
    compare,
    has_content,
)
from agent_core.tools.port import TaskOrder
from agent_core.workspace.files.paths import relative_name
from agent_core.workspace.git.worktrees.values import (
    KEPT_REFS,
    MergeConflicted,
    RemovedWorktree,
    Worktree,
    WorktreeHolds,
    WorktreeRefused,
    WorktreeUnknown,
)

if TYPE_CHECKING:
    from agent_core.workspace.git.worktrees.service import Worktrees

log = logging.getLogger(__name__)

ID_CHARS: Final = 8
SHOWN_FILES: Final = 20
CUSTOM_TYPE: Final = "tiller.taskMerge"


class TaskMerge(Value, frozen=True, kw_only=True):
    """A finished merge of a task's worktree."""

    written: Sequence[Path]
    """Files of the workspace that were written or deleted."""
    unchanged: Sequence[Path]
    """Files that had the changes already."""
    checkpoint: str | None
    """The checkpoint that takes it back; None: nothing was written."""


def worktree_of(order: TaskOrder, task: str, session: SessionId) -> str | None:
    """Return the id of the worktree of a task; None: it works in the workspace."""
    return f"{task}-{session[-ID_CHARS:]}" if order.isolation == "worktree" else None


class TaskWorktrees:
    """The worktrees in which tasks of one session work."""

    def __init__(
        self,
        worktrees: "Callable[[], Worktrees]",
        *,
        services: SessionServices,
        workspace: WorkspaceContext,
        changes: ChangeRecord,
        checkpoints: Checkpoints,
        deferred: DeferredMessages,
    ) -> None:
        self._worktrees = worktrees
        self._services = services
        self._workspace = workspace
        self._changes = changes
        self._checkpoints = checkpoints
        self._deferred = deferred

    async def open(self, task: TaskInfo, *, may_create: bool) -> Path:
        """Return the folder in which a task works.

        Args:
            task: The task.
            may_create: Whether nothing was changed for the task yet, so that a new worktree is as good.

        Raises:
            TillerError: The worktree cannot be made, or it is missing; the text says why.
        """
        worktrees, id_ = self._worktrees(), task.worktree or ""
        try:
            worktree = await self._find(worktrees, id_)
        except WorktreeUnknown:
            if not may_create:
                message = f"the worktree {id_} in which the task worked was removed, so the task cannot be continued"
                raise WorktreeRefused(message) from None
            root = self._workspace.workspace.root
            worktree = await worktrees.create(root, id_=id_, owner=task.session)
        return worktree.folder

    async def end(self, one: GivenTask) -> None:
        """Note what became of the worktree of a task that has ended; one without changes is removed."""
        id_ = _id_of(one.info)
        one.is_unchanged = False
        try:
            worktrees = self._worktrees()
            changes = await worktrees.changes(id_)
            if not changes:
                _ = await worktrees.remove(id_, asking=one.info.session)
        except WorktreeUnknown:
            one.info = replace(one.info, worktree=None)
            return
        except (TillerError, OSError) as error:
            # The end of the task is written all the same.
            log.warning("the worktree %s stays: %s", id_, error)
            one.note = f"It worked in the git worktree {id_}, which is still there: {error}."
            return
        if not changes:
            one.is_unchanged, one.info = True, replace(one.info, worktree=None)
            one.note = "It worked in a git worktree of its own and changed no files there."
            return
        one.note = (
            f"It worked in the git worktree {id_} (branch tiller/{id_}); the workspace is unchanged. Changed there: "
            f"{listed([change.path for change in changes])}. The user can review and merge them."
        )

    async def changes(self, task: TaskInfo) -> ChangeSet:
        """Return what a task changed in its worktree, as changes of the files of the workspace.

        Raises:
            UsageError: It has no worktree.
            TillerError: The worktree cannot be read.
        """
        worktrees, id_ = self._worktrees(), _id_of(task)
        worktree = await self._find(worktrees, id_)
        compared = await self._compare(worktrees, worktree)
        return ChangeSet(id=id_, base=worktree.base, files=tuple(one.review for one in compared))

    async def patch(self, task: TaskInfo) -> str:
        """Return the same as a patch of git.

        Raises:
            UsageError, TillerError: As `changes` raises them.
        """
        patch = await self._worktrees().diff(_id_of(task))
        return patch.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    async def merge(
        self,
        task: TaskInfo,
        *,
        call: ToolCallId | None,
        hunks: Collection[str] | None = None,
        files: Collection[Path] | None = None,
    ) -> TaskMerge:
        """Merge what a task changed in its worktree into the files of the workspace, unsaved texts of editors included.

        Files that changed in both are merged as three texts. Nothing is written unless all of it can be.

        Args:
            task: The task.
            call: The call that gave it.
            hunks: The hunks to merge, besides `files`; None with `files` None: everything.
            files: The files of the workspace to merge whole.

        Raises:
            UsageError: It has no worktree, or no change was chosen.
            MergeConflicted: Files were changed in the workspace too in ways that exclude the changes.
            TillerError: The worktree cannot be read, or a file cannot be written; the text says what was.
        """
        worktrees, id_ = self._worktrees(), _id_of(task)
        worktree = await self._find(worktrees, id_)
        compared = await self._compare(worktrees, worktree)
        chosen = compared
        if hunks is not None or files is not None:
            parts = (one.part(hunks or (), files or ()) for one in compared)
            chosen = [one for one in parts if one is not None]
        if not chosen:
            message = f"no change of the worktree {id_} was chosen, so nothing was merged"
            raise UsageError(message)
        if links := [one.name for one in chosen if not one.is_regular]:
            message = f"nothing was merged: links are not merged into the workspace ({listed(links)}); choose other files, or use `tiller worktree merge {id_}`"
            raise WorktreeRefused(message)
        done = await self._apply(chosen, call=call)
        if chosen == compared:
            await worktrees.keep_as_merged(id_)
        if done.written:
            await self._tell_model(task, done.written)
        return done

    async def discard(self, task: TaskInfo, *, force: bool) -> RemovedWorktree:
        """Remove the worktree of a task; its content stays reachable below `refs/tiller/kept/`.

        Raises:
            UsageError: It has no worktree.
            WorktreeRefused: It has changes that were not merged, and `force` is not set; or the task works in it.
        """
        id_ = _id_of(task)
        try:
            return await self._worktrees().remove(id_, force=force, asking=task.session)
        except WorktreeHolds as error:
            message = f"the worktree {id_} holds changes that were not merged; merge them, or discard it with force, which keeps them under {KEPT_REFS}{id_}"
            raise WorktreeHolds(message) from error

    async def _find(self, worktrees: "Worktrees", id_: str) -> Worktree:
        worktree = await worktrees.get(id_)
        if not await run_in_thread(worktree.folder.is_dir):
            message = f"the folder {str(worktree.folder)!r} of the worktree {id_} is missing; `tiller worktree remove {id_}` ends it"
            raise WorktreeRefused(message)
        return worktree

    async def _compare(self, worktrees: "Worktrees", worktree: Worktree) -> Sequence[WorktreeFile]:
        changes = await worktrees.changes(worktree.id)
        names = [
            name for one in changes if not one.is_text for name in (one.old_blob, one.new_blob)
        ]
        blobs = await worktrees.contents(worktree.id, [name for name in names if name is not None])
        top, id_ = worktree.repository, worktree.id
        return [
            await run_in_thread(partial(compare, one, blobs, path=top / one.path, of=id_))
            for one in changes
        ]

    # ------------------------------------------------------------------ merging

    async def _apply(self, chosen: Sequence[WorktreeFile], *, call: ToolCallId | None) -> TaskMerge:
        workspace = self._workspace.workspace
        found: dict[Path, Found] = {}
        goals: dict[Path, Goal] = {}
        unchanged: list[Path] = []
        programs: list[Path] = []
        conflicts: list[str] = []
        for one in chosen:
            path = await workspace.files.resolve(str(one.review.path), "write")
            found[path] = await self._read(path)
            try:
                goal = await run_in_thread(one.goal, found[path])
            except ChangesExcluded:
                conflicts.append(one.name)
                continue
            if has_content(found[path], goal):
                unchanged.append(path)
            else:
                goals[path] = goal
            if one.is_executable:
                programs.append(path)
        if conflicts:
            raise _conflict(conflicts)
        done = await self._write(goals, found, unchanged, call=call)
        await run_in_thread(make_executable, programs)
        return done

    async def _write(
        self,
        goals: Mapping[Path, Goal],
        found: Mapping[Path, Found],
        unchanged: Sequence[Path],
        *,
        call: ToolCallId | None,
    ) -> TaskMerge:
        # A run of its own, so that it is undone as a run is; events name none.
        origin = ChangeOrigin(
            edit=self._services.new_id(), run=RunId(self._services.new_id()), call=call
        )
        files = RecordedFiles(
            self._workspace.workspace.files,
            self._changes,
            author=origin,
            publish=self._publish,
            now_ms=self._services.clock.now_ms,
        )
        reverter = FileReverter(
            files,
            self._workspace.raw,
            self._changes.contents,
            recorded=partial(self._record_bytes, origin),
        )
        done: list[Path] = []
        try:
            await self._write_open(files, reverter, goals, found, done)
            # What is put somewhere comes before what is taken away: a failure in between loses nothing.
            for path in sorted(goals, key=lambda one: goals[one] is None):
                if path not in done:
                    await reverter.put(path, goals[path], found[path])
                    done.append(path)
        except WorkspaceError as error:
            written = ", ".join(one.name for one in done) or "nothing"
            message = f"{error}; before that {written} was merged"
            raise WorktreeRefused(message) from error
        made = (one.id for one in self._checkpoints.all if one.run == origin.run)
        return TaskMerge(written=done, unchanged=unchanged, checkpoint=next(made, None))

    async def _write_open(
        self,
        files: RecordedFiles,
        reverter: FileReverter,
        goals: Mapping[Path, Goal],
        found: Mapping[Path, Found],
        done: list[Path],
    ) -> None:
        """Write the texts of open documents in one edit."""
        texts = {
            path: goal
            for path, goal in goals.items()
            if isinstance(goal, str) and is_open_text({path: goal}, found)
        }
        if not texts:
            return
        writes = await reverter.writes(texts, found)
        for trouble in (await write_together(files, writes, done)).values():
            if trouble is not None:
                raise trouble

    async def _read(self, path: Path) -> Found:
        try:
            return await self._workspace.workspace.files.read(path)
        except FileMissing:
            return None

    def _publish(self, event: Event) -> None:
        self._services.publish(replace(event, run=None) if isinstance(event, EDITS) else event)

    async def _record_bytes(
        self,
        origin: ChangeOrigin,
        path: Path,
        before: FileVersion | None,
        _: FileVersion | None,
    ) -> None:
        """Record a file that was written as bytes."""
        found = await self._read(path)
        change = Change(
            id=origin.edit,
            run=origin.run,
            call=origin.call,
            by="tool",
            op="add" if before is None else "modify",
            path=path,
            before=before,
            after=None if found is None else await keep(found, self._changes.contents),
            at_ms=self._services.clock.now_ms(),
        )
        await self._changes.record(change)

    async def _tell_model(self, task: TaskInfo, written: Sequence[Path]) -> None:
        root = self._workspace.workspace.root
        names = listed([relative_name(one, root) for one in written])
        text = f"The user merged changes of task {task.id} into the workspace: {names}."
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=text),),
            # Events have told people already.
            display=False,
            details={"task": task.id},
            at_ms=self._services.clock.now_ms(),
        )
        await self._deferred.accept(message, flush_at="prompt")


class TaskMerges:
    """Changes that the tasks of a session made in worktrees, for the user to merge or remove."""

    def __init__(
        self,
        task: Callable[[str], GivenTask],
        worktrees: TaskWorktrees,
        publish: Callable[[Event], object],
    ) -> None:
        """Create it.

        Args:
            task: Returns a task by id.
            worktrees: The worktrees of the tasks.
            publish: Publishes an event.
        """
        self._task = task
        self._worktrees = worktrees
        self._publish = publish

    async def changes(self, id_: str) -> ChangeSet:
        """Return what a task changed in its worktree, as changes of the files of the workspace.

        Raises:
            UsageError: There is no such task, or it has no worktree.
            TillerError: The worktree cannot be read.
        """
        return await self._worktrees.changes(self._named(id_).info)

    async def patch(self, id_: str) -> str:
        """Return the same as a patch of git.

        Raises:
            UsageError, TillerError: As `changes` raises them.
        """
        return await self._worktrees.patch(self._named(id_).info)

    async def merge(
        self,
        id_: str,
        *,
        hunks: Collection[str] | None = None,
        files: Collection[Path] | None = None,
    ) -> TaskMerge:
        """Merge what a task changed, as `TaskWorktrees.merge` does."""
        one = self._named(id_)
        if not one.over.is_set():
            message = f"task {id_} still works in its worktree; merge its changes when it has ended, or stop it first"
            raise UsageError(message)
        return await self._worktrees.merge(one.info, call=one.call, hunks=hunks, files=files)

    async def discard(self, id_: str, *, force: bool = False) -> RemovedWorktree:
        """Remove the worktree of a task; its content stays reachable below `refs/tiller/kept/`.

        Raises:
            UsageError: There is no such task, or it has no worktree.
            WorktreeRefused: It has changes that were not merged, and `force` is not set; or the task works in it.
        """
        one = self._named(id_)
        removed = await self._worktrees.discard(one.info, force=force)
        one.info = replace(one.info, worktree=None)
        self._publish(TaskUpdated(task=one.info))
        return removed

    def _named(self, id_: str) -> GivenTask:
        try:
            return self._task(id_)
        except ToolError as error:
            raise UsageError(str(error)) from error


def _id_of(task: TaskInfo) -> str:
    if task.worktree is None:
        message = f"task {task.id} has no worktree: it worked in the workspace, or changed nothing"
        raise UsageError(message)
    return task.worktree


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence, the first ones in full."""
    more = len(names) - SHOWN_FILES
    return ", ".join(names[:SHOWN_FILES]) + (f" and {more} more" if more > 0 else "")


def make_executable(paths: Sequence[Path]) -> None:
    """Make files executable for those who may read them; missing files are left out. Blocking."""
    for path in paths:
        with suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                path.chmod(stat.S_IMODE(mode) | (mode & 0o444) >> 2)


def _conflict(names: Sequence[str]) -> MergeConflicted:
    message = f"nothing was merged: {listed(names)} changed in the workspace too, and not in the same way; change them there as you want them, or merge the other files alone"
    return MergeConflicted(message, paths=names)
