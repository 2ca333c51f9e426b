"""Changes and checkpoints as clients see them."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from agent_core.changes import Change, ChangeLog, Checkpoint, FileVersion
from agent_core.changes.history import ChangeRange, ChangeSet, change_set
from agent_core.changes.hunks import FileReview
from agent_core.changes.values import QueuedRejection, runs_to_undo
from agent_core.events import ChangeCounts, CheckpointInfo, CheckpointRestored, Notice
from agent_core.kernel import RunId
from agent_core.kernel.errors import CheckpointConflict, CheckpointUnknown, SessionBusy, TillerError
from agent_core.kernel.threads import run_in_thread
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.checkpoints import (
    NOTHING,
    Checkpoints,
    OnConflict,
    Preview,
    Restorer,
    RestoreScope,
    Skipped,
    agreed,
    model_note,
    nothing_restored_message,
    question,
    restored_message,
)
from agent_core.session.changes.file_reverter import FileReverter
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.changes.revert import ApplyResult, ProposalApplier
from agent_core.session.changes.review import (
    ChangeReviewer,
    ReviewRequest,
    ReviewResult,
    check_requests,
)
from agent_core.session.context import SessionServices, WorkspaceContext
from agent_core.session.history.branches import Branches, BranchTree
from agent_core.session.history.recorder import Background
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.runs.executor import RunStarter
from agent_core.session.runs.slot import ActivitySlot
from agent_core.workspace import FileText
from agent_core.workspace.files.text import encode_text


class ChangesView:
    """View of the changes of a session, and of the user's decisions about them."""

    def __init__(
        self,
        services: SessionServices,
        *,
        changes: ChangeRecord,
        review: ChangeReviewer,
        checkpoints: Checkpoints,
        proposals: ProposalApplier,
        workspace: WorkspaceContext,
        background: Background,
        runs: ActivitySlot,
    ) -> None:
        self._services = services
        self._changes = changes
        self._review = review
        self._checkpoints = checkpoints
        self._proposals = proposals
        self._workspace = workspace
        self._background = background
        self._runs = runs

    @property
    def log(self) -> ChangeLog:
        """Every change, in its order."""
        return self._changes.log

    @property
    def counts(self) -> ChangeCounts:
        """Counts of the changes that wait for the user's decision."""
        return self._changes.counts

    async def list(self, *, run: RunId | None = None, since: str | None = None) -> ChangeSet:
        """Return what was changed, as it is at this moment: in editors, on the disk, and in git.

        Args:
            run: Only what this run changed.
            since: Only what was changed after a checkpoint.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        extent = self._extent(run=run, since=since)
        await self._see_commits(await self._files(extent))
        return change_set(extent, await self._files(extent), self.log.all)

    async def of_run(self, run: RunId) -> ChangeSet:
        """Return what a run that has just ended changed: git is not asked, nobody can have committed it yet."""
        extent = self._extent(run=run, since=None)
        return change_set(extent, await self._files(extent), self.log.all)

    async def at(self, path: Path, text: str | None = None) -> FileReview | None:
        """Return one changed file in its present state; None: the session never changed it.

        The pending counts are updated, and published when they differ.

        Args:
            path: Absolute and resolved.
            text: The present text, if the caller knows it; None: the file is read.
        """
        if text is None:
            return await self._review.now(path)
        return await self._changes.at(path, text, is_there=True)

    async def resolve(
        self, wishes: Sequence[ReviewRequest], *, note: str | None = None
    ) -> tuple[ReviewResult, ...]:
        """Accept or reject changes; rejections of changes of the active run are done at its end.

        The model receives rejections and the note at its next run. Cancellation of the caller does not stop the work.

        Raises:
            UsageError: The note is too long, or there are too many wishes; nothing changed.
        """
        check_requests(wishes, note)
        decide = partial(self._review.decide, wishes, note=note, sets=self._set, waits=self._waits)
        return await self._background.run(decide)

    async def take_up(self) -> None:
        """Do the rejections that waited for the end of a run when a process died, and say what became of them.

        To be called once those are there who have files of the workspace open.
        """
        for queued, outcome in await self._background.run(self._review.take_up):
            self._services.publish(_taken_up(queued, outcome))

    async def apply(self, path: Path, *, before: str, after: str) -> ApplyResult:
        """Apply an edit that could not be applied when the agent made it: it is merged into the present file.

        Cancellation of the caller does not stop the work.

        Args:
            path: The file.
            before: The text that the edit was made for.
            after: The text that results from the edit.

        Raises:
            WorkspaceError: The file cannot be written; it is as it was.
        """
        applying = partial(self._proposals.apply, path, before=before, after=after)
        return await self._background.run(applying)

    async def patch(self, *, run: RunId | None = None, since: str | None = None) -> str:
        """Return a patch for git of what was changed and still stands.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        from agent_core.changes.patch import file_patch, git_patch  # noqa: PLC0415 - at first use

        extent = self._extent(run=run, since=since)
        files = change_set(extent, await self._files(extent), self.log.all).files
        root, contents = self._workspace.workspace.root, self._changes.contents
        patches = [await file_patch(one, root=root, contents=contents) for one in files]
        return await run_in_thread(git_patch, patches)

    def lost(self) -> str | None:
        """Name what commands of this session changed and no restore brings back, in a sentence; None: there is nothing."""
        return self._changes.lost(None, self._workspace.workspace.root)

    def _extent(self, *, run: RunId | None, since: str | None) -> ChangeRange:
        checkpoints = self._checkpoints
        if since is not None:
            found = checkpoints.get(since)
            return ChangeRange(id=since, base=since, first=found.changes, run=run)
        if run is None:
            session = str(self._services.session)
            base = checkpoints.all[0].id if checkpoints.all else session
            return ChangeRange(id=session, base=base)
        base = next((one.id for one in checkpoints.all if one.run == run), str(run))
        return ChangeRange(id=str(run), base=base, run=run)

    async def _files(self, extent: ChangeRange) -> tuple[FileReview, ...]:
        """Return the files of an extent as they are now; those that it does not touch are not looked at."""
        found: list[FileReview] = []
        for file in await self._changes.files():
            if any(extent.has(run, index) for run, index in file.runs):
                now = await self._review.now(file.path)
                found.append(now or file)
        return tuple(found)

    # ------------------------------------------------------------------ resolving

    def _set(self, name: str) -> Callable[[FileReview], FileReview | None] | None:
        """Return what of a file belongs to a change set, by its id: of a run, a checkpoint or the session."""
        extent: ChangeRange | None = None
        if name == self._services.session:
            extent = self._extent(run=None, since=None)
        elif any(one.run == name for one in self.log.all):
            extent = self._extent(run=RunId(name), since=None)
        else:
            try:
                extent = self._extent(run=None, since=name)
            except CheckpointUnknown:
                return None
        return partial(_part, extent, self.log)

    def _waits(self, path: Path) -> Callable[[], Awaitable[object]] | None:
        """Return what to wait for before something is taken out of a file: the end of a run that has changed it."""
        current = self._runs.current
        run = None if current is None else current.run
        if run is None or not self._changes.touches(path, run):
            return None
        return partial(self._runs.wait, run)

    # ------------------------------------------------------------------ git

    async def _see_commits(self, files: Sequence[FileReview]) -> None:
        """Accept what was committed as it is now."""
        from agent_core.changes.commit_check import committed  # noqa: PLC0415 - at first use

        waiting = {
            one.path: one for one in files if one.is_pending and one.last is not None and one.text
        }
        bytes_of: dict[Path, Callable[[], bytes]] = {}
        for path in waiting:
            found = await self._review.look(path)
            if isinstance(found, FileText) and not found.dirty:
                bytes_of[path] = partial(
                    encode_text, found.text, encoding=found.encoding, bom=found.bom
                )
        if not bytes_of:
            return
        since_ms = min(self._first_ms(waiting[path]) for path in bytes_of)
        for path in await committed(
            bytes_of,
            root=self._workspace.workspace.root,
            roots=self._workspace.workspace.roots,
            since_ms=since_ms,
            processes=self._workspace.workspace.processes,
            env=self._workspace.workspace.env,
        ):
            ids = [one.id for one in waiting[path].hunks if one.is_pending]
            await self._review.accept(path, ids, whole=True, by="git")

    def _first_ms(self, file: FileReview) -> int:
        log = self.log.all
        indices = [one.maker.index for one in file.hunks if one.is_pending]
        return log[max(indices) if indices else file.runs[-1][1]].at_ms


def _part(extent: ChangeRange, log: ChangeLog, file: FileReview) -> FileReview | None:
    found = change_set(extent, (file,), log.all).files
    return found[0] if found else None


def _taken_up(queued: QueuedRejection, outcome: ReviewResult) -> Notice:
    said = f"You rejected changes of {queued.path.name} during a run, and the process ended before the run did."
    if outcome.status == "done":
        return Notice(level="info", text=f"{said} They are taken back now.")
    why = outcome.why or "they are not there any more, or were decided otherwise"
    return Notice(level="warning", text=f"{said} They were not taken back: {why}.")


CUSTOM_TYPE = "tiller.checkpoint"
TELL_S = 5.0
OFFER_S = 120.0


class RestoreResult(Struct, kw_only=True):
    """Result of a restore."""

    undo: str
    """The checkpoint that takes it back."""
    restored: list[Path] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    editor_text: str | None = None
    """The words before which the conversation stands now; None: it did not move, or there are none."""


class CheckpointView:
    """The moments to which a session can be taken back."""

    def __init__(
        self,
        services: SessionServices,
        *,
        checkpoints: Checkpoints,
        changes: ChangeRecord,
        workspace: WorkspaceContext,
        deferred: DeferredMessages,
        questions: QuestionPrompts,
        background: Background,
        tree: BranchTree,
        branches: Branches,
        runs: ActivitySlot,
        starter: RunStarter,
    ) -> None:
        self._services = services
        self._checkpoints = checkpoints
        self._changes = changes
        self._workspace = workspace
        self._deferred = deferred
        self._questions = questions
        self._background = background
        self._tree = tree
        self._branches = branches
        self._runs = runs
        self._starter = starter

    @property
    def all(self) -> Sequence[CheckpointInfo]:
        """All of them, oldest first."""
        return tuple(self._checkpoints.shown(one) for one in self._checkpoints.all)

    @property
    def latest_run(self) -> CheckpointInfo | None:
        """The checkpoint of the newest run that changed something and was not taken back yet; None: there is none."""
        checkpoints = self._checkpoints
        left = runs_to_undo(checkpoints.all)
        return checkpoints.shown(left[-1]) if left else None

    async def preview(self, checkpoint: str) -> tuple[Preview, ...]:
        """Return what restoring the files would do, file by file; nothing changes.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        return await self._restorer().preview(self._since(self._checkpoints.get(checkpoint)))

    async def restore(
        self,
        checkpoint: str,
        *,
        scope: RestoreScope = "files",
        files: Collection[Path] | None = None,
        on_conflict: OnConflict = "skip",
    ) -> RestoreResult:
        """Restore a checkpoint; the restore is a change like any other, and has its own checkpoint that undoes it.

        Files that only this session changed get their earlier content, files that it created are deleted, files that it
        deleted or moved are put back. Files that another author changed too are skipped, unless `on_conflict` is
        `merge` or `overwrite`. The next prompt informs the model where files and conversation differ.

        Args:
            checkpoint: Its id.
            scope: The restored parts: files, conversation or both.
            files: Only these, and files that were moved to or from them; None: all.
            on_conflict: Handling of files that another author changed too: `merge` keeps the other changes where they
                are in other lines, `overwrite` does not.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
            CheckpointConflict: No file could be restored; nothing changed.
            SessionBusy: A run, a compaction or a move is going on.
            EntryUnknown: The conversation cannot go back there; nothing changed.
            StorageError: The conversation's move cannot be written; restored files stay restored.
        """
        self._starter.check_open()
        one = self._checkpoints.get(checkpoint)
        self._tree.check_idle("taken back to a checkpoint")
        if scope != "files" and one.leaf is not None:
            _ = self._tree.get_entry(one.leaf)
        activity = self._runs.reserve("restore", None)
        ended: list[RestoreResult] = []
        failed: list[Exception] = []

        async def work() -> None:
            async with self._runs.hold(activity):
                try:
                    ended.append(await self._restore(one, scope, files, on_conflict))
                except Exception as error:  # noqa: BLE001 - raised again in the task of whoever asked
                    failed.append(error)
            self._starter.go_on()

        # In the session's own tasks: whoever asked may leave, and files must not be left half way.
        self._background.start(work)
        await activity.over.wait()
        if failed:
            raise failed[0]
        if not ended:
            message = (
                "restoring was stopped; what was taken back until then can be seen in the changes"
            )
            raise SessionBusy(message)
        return ended[0]

    def offer(self) -> CheckpointInfo | None:
        """Ask the user whether the files of the newest run that changed some are to go back; they do if they say so.

        It is asked as every question is, and what became of it is told as a notice.

        Returns:
            None: No run changed anything.
        """
        self._starter.check_open()
        latest = self.latest_run
        if latest is not None:
            self._background.start(partial(self._offer, latest))
        return latest

    async def _offer(self, latest: CheckpointInfo) -> None:
        try:
            line = question(await self.preview(latest.checkpoint))
            if line is None:
                self._services.publish(Notice(level="info", text=NOTHING))
                return
            answers = await self._questions.ask_for(None, (line,), timeout_s=OFFER_S)
            if agreed(answers):
                done = await self.restore(latest.checkpoint)
                summary = restored_message(done.restored, done.skipped)
                self._services.publish(Notice(level="info", text=summary))
        except TillerError as error:
            self._services.publish(Notice(level="warning", text=str(error)))

    async def _restore(
        self,
        one: Checkpoint,
        scope: RestoreScope,
        files: Collection[Path] | None,
        on_conflict: OnConflict,
    ) -> RestoreResult:
        changes = self._since(one)
        goes_whole = scope != "conversation" and files is None
        undo = await self._checkpoints.before_reverting(restores=one.id if goes_whole else None)
        result = RestoreResult(undo=undo.id)
        try:
            if scope != "conversation":
                await self._restorer().restore(
                    changes,
                    only=files,
                    on_conflict=on_conflict,
                    restored=result.restored,
                    skipped=result.skipped,
                )
            if scope == "files" and result.skipped and not result.restored:
                raise CheckpointConflict(nothing_restored_message(result.skipped))
            if scope != "files":
                result.editor_text = await self._branches.return_to(one.leaf)
        finally:
            # Also of one that was stopped half way: what happened has happened.
            with anyio.move_on_after(TELL_S, shield=True):
                await self._publish_restored(one, result, scope, changes)
        return result

    async def _publish_restored(
        self, one: Checkpoint, result: RestoreResult, scope: RestoreScope, changes: Sequence[Change]
    ) -> None:
        await self._checkpoints.settle(self._changes.log.since(one.changes + len(changes)))
        if result.restored or scope != "files":
            self._services.publish(CheckpointRestored(checkpoint=self._checkpoints.shown(one)))
        if note := model_note(result.restored, result.skipped, scope, changes):
            message = CustomMessage(
                custom_type=CUSTOM_TYPE,
                content=(Text(text=note),),
                display=False,
                details={"checkpoint": one.id, "scope": scope},
                at_ms=self._services.clock.now_ms(),
            )
            await self._deferred.accept(message, flush_at="prompt")

    def _since(self, one: Checkpoint) -> Sequence[Change]:
        return self._changes.log.since(one.changes)

    def _restorer(self) -> Restorer:
        files = RecordedFiles(
            self._workspace.workspace.files,
            self._changes,
            author=ChangeOrigin(edit=self._services.new_id(), run=None, call=None, by="restore"),
            publish=self._services.publish,
            now_ms=self._services.clock.now_ms,
        )
        workspace, contents = self._workspace, self._changes.contents
        reverter = FileReverter(files, workspace.raw, contents, recorded=self._recorded)
        return Restorer(files, reverter)

    async def _recorded(
        self, path: Path, before: FileVersion | None, after: FileVersion | None
    ) -> None:
        await self._changes.record(
            Change(
                id=self._services.new_id(),
                run=None,
                call=None,
                by="restore",
                op="add" if before is None else "modify",
                path=path,
                before=before,
                after=after,
                at_ms=self._services.clock.now_ms(),
            )
        )
