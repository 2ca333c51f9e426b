"""`agent/subscribe`: a session's events for as long as the client wants them."""

import asyncio
from typing import Any

from server.lsp.front import Front
from server.lsp.wire import SubscribeParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Send a snapshot, then events, until the client cancels, the session ends or the client lags."""
    asked = parse(SubscribeParams, params, method="agent/subscribe")
    hosted = await front.hosted(asked.session)
    subscription = front.subscribe(
        hosted,
        asked.partial_result_token,
        detail=asked.detail or "full",
        flush_ms=asked.flush_ms,
    )
    subscription.send_snapshot(front.snapshot(hosted))
    reason = "closed"
    try:
        reason = await subscription.run()
    except asyncio.CancelledError:
        if front.connection.is_closing:
            raise
    finally:
        if front.subscriptions.get(asked.partial_result_token) is subscription:
            del front.subscriptions[asked.partial_result_token]
        elif reason == "closed":
            reason = "superseded"
    return {"reason": reason, "last": subscription.last}
