"""`agent/session/navigate`: go on from another entry of the tree."""

from agent_core.kernel import EntryId
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import (
    SESSION_NAVIGATE,
    SessionNavigateParams,
    SessionNavigateResult,
)


@session_feature(SESSION_NAVIGATE)
async def session_navigate(
    client: ConnectedClient, open_session: OpenSession, params: SessionNavigateParams
) -> SessionNavigateResult:
    """Move; with a summary the answer comes when that is made, and `$/cancelRequest` takes the move back."""
    moved = await open_session.session.tree.navigate(
        EntryId(params.target),
        summarize=params.summarize or False,
        instructions=params.instructions,
        replace_instructions=params.replace_instructions or False,
        label=params.label,
    )
    await client.flush()
    return SessionNavigateResult(
        leaf=moved.leaf,
        editor_text=moved.editor_text,
        summary=moved.summary,
        cancelled=moved.cancelled or None,
    )
