"""`agent/session/rename`: give a session a title."""

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import SessionNotFound
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_RENAME, SessionRenameParams


@session_feature(SESSION_RENAME)
async def session_rename(
    client: ConnectedClient, open_session: OpenSession, params: SessionRenameParams
) -> JsonObject:
    """Set the title; an empty one removes it."""
    session = open_session.session
    await session.tree.rename(params.title)
    await client.flush()
    library = await client.host.library()
    try:
        return session_info(await library.find(session.id))
    except SessionNotFound:
        return new_session(session, root=open_session.root, now_ms=client.host.now_ms())
