"""`agent/task/merge`: merge what a task changed in its worktree into the files of the workspace."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient, file_of
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import TASK_MERGE, TaskMergeParams, TaskMergeResult


@session_feature(TASK_MERGE)
async def task_merge(
    client: ConnectedClient, open_session: OpenSession, params: TaskMergeParams
) -> TaskMergeResult:
    """Merge the changes of a task; the answer follows the events of its edits."""
    client.dialogs.check_may_decide()
    merged = await open_session.session.tasks.merges.merge(
        params.id,
        hunks=params.hunks,
        files=None if params.files is None else [file_of(uri) for uri in params.files],
    )
    await client.flush()
    return TaskMergeResult(
        written=[path.as_uri() for path in merged.written],
        unchanged=[path.as_uri() for path in merged.unchanged],
        checkpoint=merged.checkpoint,
    )
