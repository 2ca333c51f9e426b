"""`agent/session/delete`: remove a stored session."""

from typing import Any

from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import SessionDeleteParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Close it here, then remove it; one that another process writes stays."""
    asked = parse(SessionDeleteParams, params, method="agent/session/delete")
    session = asked.session or (await front.hosted(None)).session.id
    await front.release(session)
    library = await front.host.library()
    try:
        await library.delete(SessionId(session))
    except TillerError as error:
        raise rpc_error(error, session=session) from error
    return {}
