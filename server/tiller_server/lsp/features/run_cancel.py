"""`agent/run/cancel`: stop what goes on, and say truthfully what was stopped."""

from collections.abc import Mapping

from agent_core.events.codec import block
from agent_core.kernel import ItemId, JsonObject, RunId
from agent_core.session.runs.cancel import QueueFate
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import RUN_CANCEL, RunCancelParams

QUEUE_FATES: Mapping[str, QueueFate] = {"return": "return", "drop": "drop"}
"""Fate of the prompts that wait, by `queue`; any other word keeps them."""
STILL_THERE = (
    "the run did not stop in time and was cut off; a new prompt may start",
    "the tool call did not stop in time and holds its run up; cancel the run to go on without it",
)


@session_feature(RUN_CANCEL)
async def run_cancel(
    client: ConnectedClient, open_session: OpenSession, params: RunCancelParams
) -> JsonObject:
    """Cancel; answered after the last event of what was cancelled."""
    result = await open_session.session.abort(
        run=RunId(params.run) if params.run else None,
        item=ItemId(params.item or "") if params.scope == "item" else None,
        scope="session" if params.scope == "session" else "run",
        queue=QUEUE_FATES.get(params.queue or "", "keep"),
        grace_s=None if params.grace_ms is None else params.grace_ms / 1000,
    )
    await client.flush()
    survivors = [{"pid": pid, "cmd": command} for pid, command in result.survivors]
    if result.timed_out:
        data = {
            "kind": "CancelTimeout",
            "retryable": False,
            "run": result.run,
            "survivors": survivors,
        }
        raise RpcError(REQUEST_FAILED, STILL_THERE[params.scope == "item"], data)
    return {
        "status": result.status,
        "seq": result.seq,
        "killed": [
            {"pid": pid, "cmd": ended.command}
            for ended in result.ended
            for pid in ended.killed.pids
        ],
        "survivors": survivors,
        "returned": [[block(part) for part in item.content] for item in result.returned],
    }
