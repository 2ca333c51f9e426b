"""File changes by commands of tools: found by a comparison before and after, and recorded like every other change."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import anyio
from msgspec.structs import replace

from agent_core.changes import Change, Op
from agent_core.changes.ports.change_detector import ChangeDetector, DetectedChange, DetectedChanges
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.values import Value
from agent_core.session.changes.record import ChangeRecord
from agent_core.workspace import (
    NO_NEEDS,
    FileBytes,
    Files,
    KillReport,
    Process,
    ProcessEnd,
    Processes,
)
from agent_core.workspace.permissions.call_permission import Needs

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


class WatchedProcesses:
    """Processes of a workspace; their file changes are recorded when they have ended."""

    def __init__(self, processes: Processes, keeper: ChangeDetectionRecorder) -> None:
        self._processes = processes
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

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


class _Watched:
    def __init__(self, process: Process, keeper: ChangeDetectionRecorder) -> None:
        self._process = process
        self._keeper = keeper
        self._effects: DetectedChanges | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        return await self._process.read()

    async def wait(self) -> ProcessEnd:
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        killed = await self._process.end(grace_s=grace_s)
        if self._effects is None:
            self._effects = DetectedChanges()
            self._effects = await self._keeper.take()
        changed = tuple(one.path for one in self._effects.files)
        return replace(killed, changed=changed, unseen=self._effects.incomplete)
