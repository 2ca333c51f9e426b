"""`agent/session/fork`: a new session of what was said so far, or before an entry."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.client_options import settings_of
from tiller_server.lsp.wire import SessionForkParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Make it; the client opens it when it wants to go on there."""
    asked = parse(SessionForkParams, params, method="agent/session/fork")
    hosted = await front.hosted(asked.session)
    tree = hosted.session.tree
    try:
        made = (
            await tree.clone(title=asked.title)
            if asked.at_entry is None
            else await tree.fork(EntryId(asked.at_entry), title=asked.title)
        )
        info = await _info(front, hosted, made.session, title=asked.title)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    return {**info, "editorText": made.text} if asked.at_entry is not None else info


async def _info(
    front: Front, hosted: Any, session: str | None, *, title: str | None
) -> dict[str, Any]:
    if session is None:
        # Nothing was said before that entry, so there is nothing to copy.
        fresh = await front.host.open(
            hosted.root, asked="new", settings=settings_of(front.options), front=front, chosen=True
        )
        if title is not None:
            await fresh.session.tree.rename(title)
        return new_session(fresh.session, root=hosted.root, now_ms=front.host.now_ms())
    library = await front.host.library()
    return session_info(await library.find(session))
