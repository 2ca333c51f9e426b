"""`agent/thinking/cycle`: the next thinking level that the model has."""

from typing import Any

from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import ThinkingCycleParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Choose it; in force from the next request to the model."""
    asked = parse(ThinkingCycleParams, params, method="agent/thinking/cycle")
    session = (await front.hosted(asked.session)).session
    level = await session.models.cycle_thinking()
    await front.flush()
    return {"level": level}
