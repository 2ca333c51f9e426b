"""`agent/session/read`: the items of a session, page by page, without attaching to it."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.encode.history_page import ItemUnknown, history_page
from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.transcript import full_branch
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import SESSION_READ, SessionReadParams


@feature(SESSION_READ)
async def session_read(client: ConnectedClient, params: SessionReadParams) -> JsonObject:
    """Return a page of items, oldest first: the newest ones unless a cursor says otherwise."""
    with translated_errors(session=params.session):
        entries = await full_branch(client, params.session)
    try:
        return history_page(entries, params)
    except ItemUnknown as error:
        raise invalid_params(str(error)) from error
