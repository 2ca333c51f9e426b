"""`agent/run/cancel`: stop what goes on, and say truthfully what was stopped."""

from typing import Any

from agent_core.events.codec import block
from agent_core.kernel import ItemId, RunId
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import RunCancelParams, parse

STILL_THERE = (
    "the run did not stop in time and was cut off; a new prompt may start",
    "the tool call did not stop in time and holds its run up; cancel the run to go on without it",
)


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Cancel; answered after the last event of what was cancelled."""
    asked = parse(RunCancelParams, params, method="agent/run/cancel")
    if asked.scope == "item" and asked.item is None:
        raise invalid_params("agent/run/cancel: item must be given with scope 'item'")
    open_session = await client.resolve_session(asked.session)
    result = await open_session.session.abort(
        run=RunId(asked.run) if asked.run else None,
        item=ItemId(asked.item) if asked.item and asked.scope == "item" else None,
        scope="session" if asked.scope == "session" else "run",
        queue=asked.queue if asked.queue in {"return", "drop"} else "keep",
        grace_s=None if asked.grace_ms is None else asked.grace_ms / 1000,
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
        raise RpcError(REQUEST_FAILED, STILL_THERE[asked.scope == "item"], data)
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
