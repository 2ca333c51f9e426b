"""`session.checkpoints`: going back with the files, the conversation or both."""

from collections.abc import Collection, Sequence
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from agent_core.changes import Change, Checkpoint, FileVersion
from agent_core.changes.values import runs_to_undo
from agent_core.events import CheckpointInfo, CheckpointRestored, Notice
from agent_core.kernel.errors import CheckpointConflict, SessionBusy, SessionClosed, TillerError
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.checkpoints.messages import (
    NOTHING,
    RestoreScope,
    agreed,
    model_note,
    nothing_restored_message,
    question,
    restored_message,
)
from agent_core.session.changes.checkpoints.restore import OnConflict, Preview, Restorer, Skipped
from agent_core.session.changes.recorded_files import ChangeOrigin, RecordedFiles
from agent_core.session.context import SessionContext
from agent_core.session.history.branches import Branches
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.runs.starter import RunStarter

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

    def __init__(self, parts: SessionContext, runs: ActivitySlot, starter: RunStarter) -> None:
        self._parts = parts
        self._runs = runs
        self._starter = starter
        self._branches = Branches(parts, runs, go_on=starter.go_on)

    @property
    def all(self) -> Sequence[CheckpointInfo]:
        """All of them, oldest first."""
        checkpoints = self._parts.checkpoints
        return tuple(checkpoints.shown(one) for one in checkpoints.all)

    @property
    def latest_run(self) -> CheckpointInfo | None:
        """The checkpoint of the newest run that changed something and was not taken back yet; None: there is none."""
        checkpoints = self._parts.checkpoints
        left = runs_to_undo(checkpoints.all)
        return checkpoints.shown(left[-1]) if left else None

    async def preview(self, checkpoint: str) -> tuple[Preview, ...]:
        """Return what restoring the files would do, file by file; nothing changes.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        return await self._restorer().preview(self._since(self._parts.checkpoints.get(checkpoint)))

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
        self._check_open()
        one = self._parts.checkpoints.get(checkpoint)
        self._branches.check_idle("taken back to a checkpoint")
        if scope != "files" and one.leaf is not None:
            _ = self._branches.get_entry(one.leaf)
        activity = self._runs.reserve("restore", None)
        ended: list[RestoreResult] = []
        failed: list[Exception] = []

        async def work() -> None:
            try:
                ended.append(await self._restore(one, scope, files, on_conflict))
            except Exception as error:  # noqa: BLE001 - raised again in the task of whoever asked
                failed.append(error)

        # In the session's own tasks: whoever asked may leave, and files must not be left half way.
        self._runs.start(activity, work, then=self._starter.go_on)
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
        self._check_open()
        latest, group = self.latest_run, self._parts.recorder.background.group
        if latest is not None and group is not None:
            group.start_soon(self._offer, latest)
        return latest

    async def _offer(self, latest: CheckpointInfo) -> None:
        parts = self._parts
        try:
            line = question(await self.preview(latest.checkpoint))
            if line is None:
                parts.publisher.publish(Notice(level="info", text=NOTHING))
                return
            answers = await parts.questions.ask((line,), timeout_s=OFFER_S)
            if agreed(answers):
                done = await self.restore(latest.checkpoint)
                summary = restored_message(done.restored, done.skipped)
                parts.publisher.publish(Notice(level="info", text=summary))
        except TillerError as error:
            parts.publisher.publish(Notice(level="warning", text=str(error)))

    async def _restore(
        self,
        one: Checkpoint,
        scope: RestoreScope,
        files: Collection[Path] | None,
        on_conflict: OnConflict,
    ) -> RestoreResult:
        parts = self._parts
        changes = self._since(one)
        goes_whole = scope != "conversation" and files is None
        undo = await parts.checkpoints.before_reverting(restores=one.id if goes_whole else None)
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
        parts = self._parts
        await parts.checkpoints.settle(parts.changes.log.since(one.changes + len(changes)))
        if result.restored or scope != "files":
            parts.publisher.publish(CheckpointRestored(checkpoint=parts.checkpoints.shown(one)))
        if note := model_note(result.restored, result.skipped, scope, changes):
            message = CustomMessage(
                custom_type=CUSTOM_TYPE,
                content=(Text(text=note),),
                display=False,
                details={"checkpoint": one.id, "scope": scope},
                at_ms=parts.clock.now_ms(),
            )
            await parts.deferred.accept(message, flush_at="prompt")

    def _since(self, one: Checkpoint) -> Sequence[Change]:
        return self._parts.changes.log.since(one.changes)

    def _restorer(self) -> Restorer:
        parts = self._parts
        files = RecordedFiles(
            parts.place.workspace.files,
            parts.changes,
            author=ChangeOrigin(edit=parts.new_id(), run=None, call=None, by="restore"),
            publish=parts.publisher.publish,
            now_ms=parts.clock.now_ms,
        )
        return Restorer(files, parts.place.raw, parts.contents, wrote=self._wrote)

    async def _wrote(self, path: Path, before: FileVersion | None, after: FileVersion) -> None:
        parts = self._parts
        await parts.changes.record(
            Change(
                id=parts.new_id(),
                run=None,
                call=None,
                by="restore",
                op="add" if before is None else "modify",
                path=path,
                before=before,
                after=after,
                at_ms=parts.clock.now_ms(),
            )
        )

    def _check_open(self) -> None:
        if self._starter.closed:
            message = f"session {self._parts.session!r} is closed; open it again"
            raise SessionClosed(message)
