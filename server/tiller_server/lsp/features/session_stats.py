"""`agent/session/stats`: the statistics of a session."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.encode.stored_session import stats
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_STATS, SessionStatsParams


@session_feature(SESSION_STATS)
async def session_stats(
    _client: ConnectedClient, open_session: OpenSession, _params: SessionStatsParams
) -> JsonObject:
    """Count over all branches."""
    info = open_session.session.info
    return stats(info.stats(), info.context_usage())
