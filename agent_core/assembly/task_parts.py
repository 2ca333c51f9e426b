"""The tasks of a session, built from its parts."""

from msgspec.structs import replace

from agent_core.assembly.session_parts import SessionParts
from agent_core.events import Event, PermissionRequest, RunParent, TaskInfo
from agent_core.session.tools.task_port import EDITS, OuterEdits, OuterSession
from agent_core.session.tools.task_run import TaskDeps
from agent_core.session.tools.task_worktrees import TaskWorktrees
from agent_core.tools.port import no_tasks


def task_deps(parts: SessionParts) -> TaskDeps:
    """Return the parts of a session that its tasks use."""
    snapshot = parts.publisher.snapshot

    async def wake() -> None:
        if parts.runs.current is None:
            await parts.deferred.flush("turn", "run", run=None, publish=parts.services.publish)
            parts.go_on()

    sessions = no_tasks() if parts.deps.tasks is None else parts.deps.tasks
    return TaskDeps(
        services=parts.services,
        sessions=sessions,
        worktrees=TaskWorktrees(
            sessions.worktrees,
            services=parts.services,
            workspace=parts.workspace,
            changes=parts.changes,
            checkpoints=parts.checkpoints,
            deferred=parts.deferred,
        ),
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

    edits = OuterEdits(
        changes=parts.changes,
        current_run=lambda: snapshot.activity.run,
        publish=publish_edit,
    )
    return OuterSession(
        parent=RunParent(session=parts.services.session, item=task.item),
        permissions=parts.workspace.permissions,
        prompts=parts.broker.prompts,
        questions=parts.questions,
        workspace=parts.workspace,
        mcp_tools=parts.toolbox.server_tools,
        model=parts.models.ref,
        thinking=parts.models.thinking,
        background=parts.commands_in_background,
        shown_as=shown_as,
        edits=None if task.worktree is not None else edits,
        on_spent=parts.usage.spent,
        exhausted=parts.budgets.exhausted_for_tasks,
        budgets=parts.budgets,
    )
