"""The tasks of a session, built from its parts."""

from typing import Final

from msgspec.structs import replace

from agent_core.assembly.session_parts import SessionParts
from agent_core.events import Event, PermissionRequest, TaskInfo
from agent_core.events.union import (
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
)
from agent_core.session.tools.task_port import OuterSession
from agent_core.session.tools.task_recovery import TaskRecovery
from agent_core.session.tools.tasks import SessionTasks, TaskDeps
from agent_core.tools.port import no_tasks

EDITS: Final = (EditApplied, EditConflict, EditProposed, EditRejected)
"""Events of edits that the call of a tool makes."""


def build_tasks(parts: SessionParts) -> tuple[SessionTasks, TaskRecovery]:
    """Build the tasks of a session, those of its file included, and what reports those of an earlier process."""
    deps = _deps(parts)
    tasks = SessionTasks(deps, parts.recovered)
    return tasks, TaskRecovery(tasks, deps, parts.recovered)


def _deps(parts: SessionParts) -> TaskDeps:
    snapshot = parts.publisher.snapshot

    async def wake() -> None:
        if parts.runs.current is None:
            await parts.deferred.flush("turn", "run", run=None, publish=parts.services.publish)
            parts.go_on()

    return TaskDeps(
        services=parts.services,
        sessions=no_tasks() if parts.deps.tasks is None else parts.deps.tasks,
        recorder=parts.recorder,
        deferred=parts.deferred,
        outer=lambda task: _outer(parts, task),
        active_tools=lambda: parts.toolbox.active_names,
        current_run=lambda: snapshot.activity.run,
        wake=wake,
        spent=parts.usage.spent,
        exhausted=parts.budgets.exhausted_for_tasks,
    )


def _outer(parts: SessionParts, task: TaskInfo) -> OuterSession:
    """Return the parts of a session that the session of a task uses in the place of its own."""
    snapshot = parts.publisher.snapshot

    def shown_as(request: PermissionRequest) -> PermissionRequest:
        title = f"Task {task.id} ({task.description}): {request.title}"
        item = task.item or request.item
        # It belongs to no run of this session: it may outlive the present one.
        return replace(request, session=parts.services.session, run=None, item=item, title=title)

    def publish_edit(event: Event) -> None:
        # Nothing of a run follows its end.
        is_late = isinstance(event, EDITS) and event.run != snapshot.activity.run
        parts.services.publish(replace(event, run=None) if is_late else event)

    return OuterSession(
        session=parts.services.session,
        permissions=parts.workspace.permissions,
        prompts=parts.broker.prompts,
        questions=parts.questions,
        changes=parts.changes,
        workspace=parts.workspace,
        mcp_tools=parts.toolbox.server_tools,
        model=parts.models.ref,
        thinking=parts.models.thinking,
        background=parts.commands_in_background,
        shown_as=shown_as,
        current_run=lambda: snapshot.activity.run,
        publish_edit=publish_edit,
        on_spent=parts.usage.spent,
        exhausted=parts.budgets.exhausted_for_tasks,
    )
