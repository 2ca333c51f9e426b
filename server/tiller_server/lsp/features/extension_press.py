"""`agent/extension/press`: a key of an extension was pressed."""

from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.extensions import (
    EXTENSION_PRESS,
    ExtensionPressParams,
    ExtensionPressResult,
)


@feature(EXTENSION_PRESS)
async def extension_press(
    client: ConnectedClient, params: ExtensionPressParams
) -> ExtensionPressResult:
    """Start the action of the key; a failure is published as `extension.error`."""
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session(params.session)
    session = open_session.session
    with (
        translated_errors(session=session.id),
        open_session.environment.use_for_submission(client.origin.env),
    ):
        session.resources.press(params.key)
    return ExtensionPressResult()
