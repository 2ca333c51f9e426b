"""`agent/session/stats`: the statistics of a session."""

from typing import Any

from tiller_server.lsp.encode.stored_session import stats
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionStatsParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Count over all branches."""
    asked = parse(SessionStatsParams, params, method="agent/session/stats")
    info = (await client.resolve_session(asked.session)).session.info
    return stats(info.stats(), info.context_usage())
