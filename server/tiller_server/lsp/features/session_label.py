"""`agent/session/label`: mark an entry of the tree."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionLabelParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Set the label, or take it off."""
    asked = parse(SessionLabelParams, params, method="agent/session/label")
    session = (await client.resolve_session(asked.session)).session
    try:
        await session.tree.label(EntryId(asked.entry), asked.label)
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    return {}
