"""`agent/task/stop`: stop a task for the user."""

from agent_core.events.codec import value
from agent_core.kernel.errors import ToolError, UsageError
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import TASK_STOP, TaskStopParams
from tiller_server.lsp.wire.session import TaskInfo


@session_feature(TASK_STOP)
async def task_stop(
    client: ConnectedClient, open_session: OpenSession, params: TaskStopParams
) -> TaskInfo:
    """Stop a task for the user; the answer follows its `task.ended`."""
    try:
        task = await open_session.session.tasks.stop_for_user(params.id)
    except ToolError as error:
        raise UsageError(str(error)) from error
    await client.flush()
    return TaskInfo.model_validate(value(task))
