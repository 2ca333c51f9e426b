"""`agent/task/changes`: the changes of a task in its worktree."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.encode.change_sets import change_set
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import TASK_CHANGES, TaskChangesParams


@session_feature(TASK_CHANGES)
async def task_changes(
    client: ConnectedClient, open_session: OpenSession, params: TaskChangesParams
) -> JsonObject:
    """Return what a task changed in its worktree, as changes of the files of the workspace."""
    merges = open_session.session.tasks.merges
    patch = await merges.patch(params.id) if params.format == "gitPatch" else None
    return await change_set(
        await merges.changes(params.id),
        encoding=client.editor.mirror.encoding,
        redactor=client.host.redactor,
        patch=patch,
    )
