"""`agent/extension/press`: a key of an extension was pressed."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ExtensionPressParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Start what it stands for; a failure is told as `extension.error`."""
    asked = parse(ExtensionPressParams, params, method="agent/extension/press")
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        with open_session.environment.use_for_submission(client.origin.env):
            session.resources.press(asked.key)
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    return {}
