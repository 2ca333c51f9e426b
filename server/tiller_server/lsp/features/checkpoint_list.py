"""`agent/checkpoint/list`: the moments to which files and conversation can be taken back."""

from typing import Any

from agent_core.events.codec import checkpoint
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import CheckpointListParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """List them, oldest first."""
    asked = parse(CheckpointListParams, params, method="agent/checkpoint/list")
    session = (await client.resolve_session(asked.session)).session
    return {"checkpoints": [checkpoint(one) for one in session.checkpoints.all]}
