"""`agent/extension/render`: a message of an extension as the view that it has for it."""

from agent_core.kernel import EntryId, JsonObject
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.extensions import EXTENSION_RENDER, ExtensionRenderParams


@session_feature(EXTENSION_RENDER)
async def extension_render(
    _client: ConnectedClient, open_session: OpenSession, params: ExtensionRenderParams
) -> JsonObject:
    """Return it; null where there is none, or where it failed, which is published as `extension.error`."""
    return {"view": await open_session.session.resources.rendered(EntryId(params.entry))}
