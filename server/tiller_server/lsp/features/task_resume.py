"""`agent/task/resume`: continue a task."""

from agent_core.events.codec import value
from agent_core.kernel.errors import ToolError, UsageError
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import TASK_RESUME, TaskResumeParams
from tiller_server.lsp.wire.session import TaskInfo


@session_feature(TASK_RESUME)
async def task_resume(
    client: ConnectedClient, open_session: OpenSession, params: TaskResumeParams
) -> TaskInfo:
    """Continue a task that was lost, stopped or failed; it works in the background."""
    try:
        task = await open_session.session.tasks.resume(params.id)
    except ToolError as error:
        raise UsageError(str(error)) from error
    await client.flush()
    return TaskInfo.model_validate(value(task))
