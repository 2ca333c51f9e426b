"""`agent/session/fork`: a new session of what was said so far, or before an entry."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.clients.options import settings_of
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionForkParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Make it; the client opens it when it wants to go on there."""
    asked = parse(SessionForkParams, params, method="agent/session/fork")
    open_session = await client.resolve_session(asked.session)
    tree = open_session.session.tree
    try:
        made = (
            await tree.clone(title=asked.title)
            if asked.at_entry is None
            else await tree.fork(EntryId(asked.at_entry), title=asked.title)
        )
        info = await _info(client, open_session, made.session, title=asked.title)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    return {**info, "editorText": made.text} if asked.at_entry is not None else info


async def _info(
    client: ConnectedClient, open_session: Any, session: str | None, *, title: str | None
) -> dict[str, Any]:
    if session is None:
        # Nothing was said before that entry, so there is nothing to copy.
        fresh = await client.host.open(
            open_session.root,
            asked="new",
            settings=settings_of(client.options),
            client=client,
            chosen=True,
        )
        if title is not None:
            await fresh.session.tree.rename(title)
        return new_session(fresh.session, root=open_session.root, now_ms=client.host.now_ms())
    library = await client.host.library()
    return session_info(await library.find(session))
