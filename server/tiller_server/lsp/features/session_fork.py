"""`agent/session/fork`: a new session of what was said so far, or before an entry."""

from agent_core.kernel import EntryId, JsonObject
from tiller_server.lsp.clients.options import settings_of
from tiller_server.lsp.encode.stored_session import new_session, session_info
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_FORK, SessionForkParams


@session_feature(SESSION_FORK)
async def session_fork(
    client: ConnectedClient, open_session: OpenSession, params: SessionForkParams
) -> JsonObject:
    """Create it; the client opens it when it wants to go on there."""
    tree = open_session.session.tree
    made = (
        await tree.clone(title=params.title)
        if params.at_entry is None
        else await tree.fork(EntryId(params.at_entry), title=params.title)
    )
    info = await _info(client, open_session, made.session, title=params.title)
    return {**info, "editorText": made.text} if params.at_entry is not None else info


async def _info(
    client: ConnectedClient, open_session: OpenSession, session: str | None, *, title: str | None
) -> JsonObject:
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
