"""`agent/extension/render`: a message of an extension as the view that it has for it."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ExtensionRenderParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return it; null where there is none, or where it failed, which is told as `extension.error`."""
    asked = parse(ExtensionRenderParams, params, method="agent/extension/render")
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        view = await session.resources.rendered(EntryId(asked.entry))
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    return {"view": view}
