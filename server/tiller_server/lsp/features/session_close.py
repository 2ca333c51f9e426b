"""`agent/session/close`: end what goes on in a session and let it go."""

from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.sessions import SESSION_CLOSE, Empty, SessionCloseParams


@feature(SESSION_CLOSE)
async def session_close(client: ConnectedClient, params: SessionCloseParams) -> Empty:
    """Close it; it stays stored. One that is not loaded is closed already."""
    await client.release(params.session)
    return Empty()
