"""`agent/thinking/cycle`: the next thinking level that the model has."""

from typing import Any

from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ThinkingCycleParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Choose it; in force from the next request to the model."""
    asked = parse(ThinkingCycleParams, params, method="agent/thinking/cycle")
    session = (await client.resolve_session(asked.session)).session
    level = await session.models.cycle_thinking()
    await client.flush()
    return {"level": level}
