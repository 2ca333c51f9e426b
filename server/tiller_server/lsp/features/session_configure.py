"""`agent/session/configure`: change what is in force."""

from typing import Any

from agent_core.assembly.models.default_model import keep_first_model
from agent_core.resources.paths import app_paths
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ConfigureParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Change it; in force from the next request to the model."""
    asked = parse(ConfigureParams, params, method="agent/session/configure")
    open_session = await client.resolve_session(asked.session)
    before = open_session.session.models.current
    config = await apply_config(open_session.session, asked.set)
    if asked.set.model is not None:
        chosen, paths = open_session.session.models.current, app_paths(client.origin.env)
        _ = await keep_first_model(chosen, before=before, paths=paths)
    await client.flush()
    return {"config": serializer.config(config), "effectiveFrom": "now"}
