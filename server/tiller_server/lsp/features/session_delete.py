"""`agent/session/delete`: remove a stored session."""

from agent_core.kernel import SessionId
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.sessions import SESSION_DELETE, Empty, SessionDeleteParams


@feature(SESSION_DELETE)
async def session_delete(client: ConnectedClient, params: SessionDeleteParams) -> Empty:
    """Close it here, then remove it; one that another process writes stays."""
    session = params.session or (await client.resolve_session(None)).session.id
    with translated_errors(session=session):
        await client.release(session)
        library = await client.host.library()
        await library.delete(SessionId(session))
    return Empty()
