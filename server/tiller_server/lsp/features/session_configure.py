"""`agent/session/configure`: change what is in force."""

from agent_core.assembly.models import keep_first_model
from agent_core.kernel import JsonObject
from agent_core.resources.paths import app_paths
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_CONFIGURE, ConfigureParams


@session_feature(SESSION_CONFIGURE)
async def session_configure(
    client: ConnectedClient, open_session: OpenSession, params: ConfigureParams
) -> JsonObject:
    """Change it; in force from the next request to the model."""
    session = open_session.session
    before = session.models.current
    config = await apply_config(session, params.set)
    if params.set.model is not None:
        chosen, paths = session.models.current, app_paths(client.origin.env)
        _ = await keep_first_model(chosen, before=before, paths=paths)
    await client.flush()
    return {"config": serializer.config(config), "effectiveFrom": "now"}
