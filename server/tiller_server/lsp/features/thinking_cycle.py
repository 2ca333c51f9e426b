"""`agent/thinking/cycle`: the next thinking level that the model has."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import (
    THINKING_CYCLE,
    ThinkingCycleParams,
    ThinkingCycleResult,
)


@session_feature(THINKING_CYCLE)
async def thinking_cycle(
    client: ConnectedClient, open_session: OpenSession, _params: ThinkingCycleParams
) -> ThinkingCycleResult:
    """Choose it; in force from the next request to the model."""
    level = await open_session.session.models.cycle_thinking()
    await client.flush()
    return ThinkingCycleResult(level=level)
