"""Detection of changes by commands and by the user."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

import anyio
from msgspec.structs import replace
from typing_extensions import override

from agent_core.changes import Change, ChangeSource, Op
from agent_core.changes.ports import ChangeDetector, DetectedChange, DetectedChanges
from agent_core.events import DocumentChange, EditApplied, EditSaved, EditUndone, Event
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.review import ChangeReviewer
from agent_core.session.context import SessionServices
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.workspace import NO_NEEDS, FileBytes, Files, KillReport, Process, Processes
from agent_core.workspace.files.proxy import EditOrigin
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.interactive import ProcessesProxy, ProcessProxy

CUSTOM_TYPE: Final = "tiller.edit"

UserEditKind: TypeAlias = Literal["undone", "redone", "saved"]


class UserEdit(Value, frozen=True, kw_only=True):
    """User's action on one edit in one document."""

    fate: UserEditKind
    path: Path
    """Absolute and resolved."""
    origin: EditOrigin
    sha256: str
    """Hash of the text now."""
    version: int | None
    """The editor's version of the document now; None: it gives none."""
    is_saved: bool = False


class UserEdits:
    """Handler of the users' own edits that editors report."""

    def __init__(
        self,
        services: SessionServices,
        *,
        changes: ChangeRecord,
        review: ChangeReviewer,
        deferred: DeferredMessages,
    ) -> None:
        self._services = services
        self._changes = changes
        self._review = review
        self._deferred = deferred

    async def take(self, edit: UserEdit) -> None:
        """Publish the state of an edit; the model is informed at the next prompt if it was undone or redone.

        Raises:
            StorageError: The message for the model could not be stored; the event was published.
        """
        by = self._changes.log.source_of(edit.origin.edit)
        self._services.publish(_event(edit, by, run=self._run_of(edit)))
        text = _model_text(edit, by)
        if text is None:
            return
        # Its hunks wait no more, or wait again.
        _ = await self._review.now(edit.path)
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=text),),
            # The event has told people already.
            display=False,
            details={"edit": edit.origin.edit, "path": str(edit.path), "fate": edit.fate},
            at_ms=self._services.clock.now_ms(),
        )
        await self._deferred.accept(message, flush_at="prompt")

    def _run_of(self, edit: UserEdit) -> RunId | None:
        """Return the run of an edit while it goes on: nothing of a run follows its end."""
        return (
            edit.origin.run
            if edit.origin.run == self._services.publisher.snapshot.activity.run
            else None
        )


def _event(edit: UserEdit, by: ChangeSource, *, run: RunId | None) -> Event:
    kinds = {"undone": EditUndone, "redone": EditApplied, "saved": EditSaved}
    change = DocumentChange(
        path=edit.path,
        status="undone" if edit.fate == "undone" else "applied",
        saved=edit.is_saved,
        version=edit.version,
        sha256=edit.sha256,
        why=_WHY.get((by, edit.fate)),
    )
    return kinds[edit.fate](
        run=run, edit=edit.origin.edit, call=edit.origin.call, documents=(change,)
    )


def _model_text(edit: UserEdit, by: ChangeSource) -> str | None:
    template = _MODEL_TEXTS.get((by, edit.fate))
    return None if template is None else template.format(path=edit.path)


_REDONE: Final = "the user did it again in the editor"
_WHY: Final[Mapping[tuple[ChangeSource, UserEditKind], str]] = {
    ("tool", "redone"): _REDONE,
    ("process", "redone"): _REDONE,
    ("reject", "undone"): "the rejection was undone in the editor",
    ("reject", "redone"): _REDONE,
    ("restore", "undone"): "the restore was undone in the editor",
    ("restore", "redone"): _REDONE,
}
_EDIT_UNDONE: Final = "The user undid your edit of {path} in the editor: its changes are not in the text any more. Do not make them again unasked."
_EDIT_REDONE: Final = (
    "The user brought your edit of {path} back, which they had undone: its changes are in the text."
)
_MODEL_TEXTS: Final[Mapping[tuple[ChangeSource, UserEditKind], str]] = {
    ("tool", "undone"): _EDIT_UNDONE,
    ("tool", "redone"): _EDIT_REDONE,
    ("process", "undone"): _EDIT_UNDONE,
    ("process", "redone"): _EDIT_REDONE,
    (
        "reject",
        "undone",
    ): "The user undid their rejection in {path} with the editor's undo: your changes that it had taken out are in the text again.",
    (
        "reject",
        "redone",
    ): "The user rejected your changes in {path} again with the editor's redo: they are not in the text. Do not make them again unasked.",
    (
        "restore",
        "undone",
    ): "The user undid the restore of {path} with the editor's undo: the text is again as it was before the restore.",
    (
        "restore",
        "redone",
    ): "The user restored {path} again with the editor's redo: what was changed in it since that point is gone.",
}


LOOK_S = 2.5
"""How long the look after a command may take: a cancel waits for it."""
WRITE_S = 2.0
"""How long writing down what was seen may take."""
NOT_SEEN = (
    "What the command did to files was not seen: looking at the workspace failed or took too long."
)
T = TypeVar("T")

log = logging.getLogger(__name__)


class ChangeDetectionRecorder(Value, frozen=True, kw_only=True):
    """Writes down what one tool call's commands did."""

    detector: ChangeDetector
    record: ChangeRecord
    files: Files
    run: RunId
    call: ToolCallId
    new_id: Callable[[], str]
    now_ms: Callable[[], int]

    async def take(self) -> DetectedChanges:
        """Look, and write down what is different."""
        effects = DetectedChanges(incomplete=NOT_SEEN)
        with anyio.move_on_after(LOOK_S):
            effects = await run_or_default(self.detector.diff, effects)
        if effects.incomplete:
            self.record.note_incomplete(
                self.run, f"{effects.incomplete} Undo does not bring that back."
            )
        edit, until = self.new_id(), anyio.current_time() + WRITE_S
        for one in effects.lost:
            await self.record.record(replace(await self._change(one, edit), ignored=True))
        for at, one in enumerate(effects.files):
            if anyio.current_time() > until:
                left = f"{len(effects.files) - at} more files were changed and are not listed."
                self.record.note_incomplete(self.run, f"{left} Undo does not bring that back.")
                return DetectedChanges(files=effects.files[:at], incomplete=left)
            await self.record.record(await self._change(one, edit))
        return effects

    async def _change(self, effect: DetectedChange, edit: str) -> Change:
        op: Op = (
            "modify" if effect.before and effect.after else ("add" if effect.after else "delete")
        )
        if effect.source is not None:
            op = "move"
        return Change(
            id=edit,
            run=self.run,
            call=self.call,
            by="process",
            op=op,
            path=effect.path,
            source=effect.source,
            before=effect.before,
            after=effect.after,
            at_ms=self.now_ms(),
            maybe_user_edit=await self._is_open(effect.path),
        )

    async def _is_open(self, path: Path) -> bool:
        """Return whether an editor has a file open: its user may have saved it while the command ran."""
        try:
            found = await self.files.read(path, limit_bytes=0)
        except WorkspaceError:
            return False
        return not isinstance(found, FileBytes) and found.source == "buffer"


async def run_or_default(look: Callable[[], Awaitable[T]], otherwise: T) -> T:
    """Look; when that fails, the command and its session go on all the same."""
    try:
        return await look()
    except Exception:
        log.exception("the workspace could not be looked at")
        return otherwise


class WatchedProcesses(ProcessesProxy):
    """Processes of a workspace; their file changes are recorded when they have ended."""

    def __init__(self, processes: Processes, keeper: ChangeDetectionRecorder) -> None:
        super().__init__(processes)
        self._keeper = keeper

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Look, then start."""
        await run_or_default(self._keeper.detector.snapshot, None)
        process = await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        return _Watched(process, self._keeper)


class _Watched(ProcessProxy):
    def __init__(self, process: Process, keeper: ChangeDetectionRecorder) -> None:
        super().__init__(process)
        self._keeper = keeper
        self._effects: DetectedChanges | None = None

    @override
    async def end(self, *, grace_s: float) -> KillReport:
        killed = await self._process.end(grace_s=grace_s)
        if self._effects is None:
            self._effects = DetectedChanges()
            self._effects = await self._keeper.take()
        changed = tuple(one.path for one in self._effects.files)
        return replace(killed, changed=changed, unseen=self._effects.incomplete)
