"""`agent/session/rename`: give a session a title."""

from typing import Any

from agent_core.kernel.errors import SessionNotFound, TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionRenameParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Set the title; an empty one takes it away."""
    asked = parse(SessionRenameParams, params, method="agent/session/rename")
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        await session.tree.rename(asked.title)
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    library = await client.host.library()
    try:
        return session_info(await library.find(session.id))
    except SessionNotFound:
        return new_session(session, root=open_session.root, now_ms=client.host.now_ms())
