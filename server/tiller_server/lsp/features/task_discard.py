"""`agent/task/discard`: remove the worktree of a task."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import TASK_DISCARD, TaskDiscardParams, TaskDiscardResult


@session_feature(TASK_DISCARD)
async def task_discard(
    client: ConnectedClient, open_session: OpenSession, params: TaskDiscardParams
) -> TaskDiscardResult:
    """Remove the worktree of a task; its content is kept below a ref."""
    client.dialogs.check_may_decide()
    removed = await open_session.session.tasks.merges.discard(params.id, force=bool(params.force))
    await client.flush()
    return TaskDiscardResult(kept_ref=removed.kept_ref)
