"""`agent/session/fork`: a new session of what was said so far, or before an entry."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from server.lsp.client_options import settings_of
from server.lsp.failures import rpc_error
from server.lsp.front import Front
from server.lsp.session_pictures import new_session, session_info
from server.lsp.wire import SessionForkParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Make it; the client opens it when it wants to go on there."""
    asked = parse(SessionForkParams, params, method="agent/session/fork")
    hosted = await front.hosted(asked.session)
    tree = hosted.session.tree
    try:
        made = (
            await tree.clone()
            if asked.at_entry is None
            else await tree.fork(EntryId(asked.at_entry))
        )
        info = await _info(front, hosted, made.session)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    return {**info, "editorText": made.text} if asked.at_entry is not None else info


async def _info(front: Front, hosted: Any, session: str | None) -> dict[str, Any]:
    if session is None:
        # Nothing was said before that entry, so there is nothing to copy.
        fresh = await front.host.open(
            hosted.root, asked="new", settings=settings_of(front.options), front=front
        )
        return new_session(fresh.session, root=hosted.root, now_ms=front.host.now_ms())
    library = await front.host.library()
    return session_info(await library.find(session))
