"""`agent/session/rename`: give a session a title."""

from typing import Any

from agent_core.kernel.errors import SessionNotFound, TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import SessionRenameParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Set the title; an empty one takes it away."""
    asked = parse(SessionRenameParams, params, method="agent/session/rename")
    hosted = await front.hosted(asked.session)
    session = hosted.session
    try:
        await session.tree.rename(asked.title)
    except TillerError as error:
        raise rpc_error(error, session=session.id) from error
    await front.flush()
    library = await front.host.library()
    try:
        return session_info(await library.find(session.id))
    except SessionNotFound:
        return new_session(session, root=hosted.root, now_ms=front.host.now_ms())
