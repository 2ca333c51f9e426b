"""`agent/extension/press`: a key of an extension was pressed."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import ExtensionPressParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Start what it stands for; a failure is told as `extension.error`."""
    asked = parse(ExtensionPressParams, params, method="agent/extension/press")
    front.dialogs.check_may_decide()
    hosted = await front.hosted(asked.session)
    session = hosted.session
    try:
        with hosted.environment.speaks(front.origin.env):
            session.resources.press(asked.key)
    except TillerError as error:
        raise rpc_error(error, session=session.id) from error
    return {}
