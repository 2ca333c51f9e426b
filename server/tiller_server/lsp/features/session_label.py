"""`agent/session/label`: mark an entry of the tree."""

from agent_core.kernel import EntryId
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_LABEL, Empty, SessionLabelParams


@session_feature(SESSION_LABEL)
async def session_label(
    _client: ConnectedClient, open_session: OpenSession, params: SessionLabelParams
) -> Empty:
    """Set the label, or take it off."""
    await open_session.session.tree.label(EntryId(params.entry), params.label)
    return Empty()
