"""Context of one tool call: files and processes with permission checks, and with a record of every change."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from agent_core.events import Event
from agent_core.kernel import RunId
from agent_core.messages import ToolCall
from agent_core.session.changes.detection import (
    ChangeDetectionRecorder,
    WatchedProcesses,
    run_or_default,
)
from agent_core.session.changes.recorded_files import ChangeOrigin, RecordedFiles
from agent_core.session.context import SessionContext, tool_options
from agent_core.session.permissions.guarded_files import GuardedFiles
from agent_core.session.tools.processes import TrackedProcesses
from agent_core.tools import ToolContext, ToolSpec
from agent_core.workspace import Processes


def tool_context(
    parts: SessionContext,
    call: ToolCall,
    *,
    run: RunId,
    output: Callable[[str], None],
    publish: Callable[[Event], object],
) -> ToolContext:
    """Return it; `output` takes what a command writes, `publish` tells what becomes of edits."""
    place, gate = parts.place, parts.gate
    guarded = GuardedFiles(
        place.workspace.files,
        situation=lambda: place.permissions.snapshot(tuple(place.workspace.roots)),
        approved=lambda: gate.approved_for(call.id),
        secrets=place.secrets,
    )
    files = RecordedFiles(
        guarded,
        parts.changes,
        author=ChangeOrigin(edit=parts.new_id(), run=run, call=call.id),
        publish=publish,
        now_ms=parts.clock.now_ms,
    )
    return ToolContext(
        call=call.id,
        workspace=replace(place.workspace, files=files, processes=_processes(parts, call, run)),
        clock=parts.clock,
        output=output,
        scratch=parts.options.scratch,
        options=tool_options(parts.options, call.name),
        ask=parts.questions.asks_for(run),
        seen=parts.seen,
        versions=parts.versions,
        secrets=place.secrets,
        name_warning=gate.warned.get(call.id),
    )


def look_ahead(parts: SessionContext, specs: Iterable[ToolSpec]) -> None:
    """Look at a trusted workspace while the model thinks: the first look at a large one takes its time."""
    detector, group = parts.place.detector, parts.recorder.background.group
    if detector is None or group is None or not parts.place.permissions.is_trusted():
        return
    if any(one.kind == "execute" for one in specs):
        group.start_soon(run_or_default, detector.prepare, None)


def _processes(parts: SessionContext, call: ToolCall, run: RunId) -> Processes:
    """Return what a call starts processes with; of tools that only look nobody asks what they did."""
    place, tool = parts.place, parts.toolbox.active().get(call.name)
    tracked = TrackedProcesses(
        place.workspace.processes,
        place.processes,
        call=call.id,
        needs=parts.gate.needs_for(call.id),
    )
    if place.detector is None or tool is None or tool.spec.kind != "execute":
        return tracked
    keeper = ChangeDetectionRecorder(
        detector=place.detector,
        record=parts.changes,
        files=place.workspace.files,
        run=run,
        call=call.id,
        new_id=parts.new_id,
        now_ms=parts.clock.now_ms,
    )
    return WatchedProcesses(tracked, keeper)
