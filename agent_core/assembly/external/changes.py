"""Changes of files that an external agent makes with its own hands."""

from functools import partial

from agent_core.kernel import Clock, RunId, ToolCallId, uuid7
from agent_core.kernel.values import Value
from agent_core.session.changes.detection import ChangeDetectionRecorder, run_or_default
from agent_core.session.tools.task_port import OuterSession


class DetectedAgentChanges(Value, frozen=True, kw_only=True):
    """Recorder of these changes in the session that gave the task; a task in a worktree needs none."""

    outer: OuterSession
    clock: Clock

    async def snapshot(self) -> None:
        """Record the files of the workspace before the agent works."""
        detector = self.outer.workspace.detector
        if detector is not None and self.outer.edits is not None:
            await run_or_default(detector.snapshot, None)

    async def record(self, *, run: RunId | None, call: ToolCallId) -> None:
        """Record what is different since the snapshot."""
        detector, edits = self.outer.workspace.detector, self.outer.edits
        run = run if edits is None else edits.current_run() or run
        if detector is None or edits is None or run is None:
            return
        recorder = ChangeDetectionRecorder(
            detector=detector,
            record=edits.changes,
            files=self.outer.workspace.workspace.files,
            run=run,
            call=call,
            new_id=lambda: uuid7(self.clock.now_ms()),
            now_ms=self.clock.now_ms,
        )
        await run_or_default(partial(_taken, recorder), None)


async def _taken(recorder: ChangeDetectionRecorder) -> None:
    _ = await recorder.take()
