"""`agent/compact`: summarise the older part of the conversation."""

from agent_core.kernel import JsonObject, JsonValue
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import COMPACT, CompactParams


@session_feature(COMPACT)
async def compact(
    client: ConnectedClient, open_session: OpenSession, params: CompactParams
) -> JsonObject:
    """Begin; `compaction.ended` reports the outcome."""
    receipt = await open_session.session.compact(
        params.instructions, keep_recent_tokens=params.keep_recent_tokens
    )
    await client.flush()
    answer: dict[str, JsonValue] = {"compaction": receipt.compaction, "seq": receipt.seq}
    if receipt.cancelled_run is not None:
        answer["cancelledRun"] = receipt.cancelled_run
    return answer if receipt.compaction else {**answer, "why": receipt.why}
