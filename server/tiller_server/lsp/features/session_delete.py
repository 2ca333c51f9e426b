"""`agent/session/delete`: remove a stored session."""

from typing import Any

from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionDeleteParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Close it here, then remove it; one that another process writes stays."""
    asked = parse(SessionDeleteParams, params, method="agent/session/delete")
    session = asked.session or (await client.resolve_session(None)).session.id
    await client.release(session)
    library = await client.host.library()
    try:
        await library.delete(SessionId(session))
    except TillerError as error:
        raise to_rpc_error(error, session=session) from error
    return {}
