"""`agent/compact`: summarise the older part of the conversation."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import CompactParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Begin; `compaction.ended` tells the rest."""
    asked = parse(CompactParams, params, method="agent/compact")
    open_session = await client.resolve_session(asked.session)
    try:
        receipt = await open_session.session.compact(
            asked.instructions, keep_recent_tokens=asked.keep_recent_tokens
        )
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    await client.flush()
    answer: dict[str, Any] = {"compaction": receipt.compaction, "seq": receipt.seq}
    if receipt.cancelled_run is not None:
        answer["cancelledRun"] = receipt.cancelled_run
    return answer if receipt.compaction else {**answer, "why": receipt.why}
