"""`agent/subscribe`: a session's events for as long as the client wants them."""

import asyncio
from typing import Any

from tiller_server.lsp.events.flow_control import SendWindow
from tiller_server.lsp.events.subscription import Subscription
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SubscribeParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Send what was missed or a snapshot, then events, until the client cancels, the session ends or the client lags."""
    asked = parse(SubscribeParams, params, method="agent/subscribe")
    open_session = await client.resolve_session(asked.session)
    token = asked.partial_result_token
    subscription = client.subscribe(
        open_session,
        token,
        detail=asked.detail or "full",
        flush_ms=asked.flush_ms,
        send_window=None if asked.ack in {None, False} else SendWindow(),
    )
    reason = "closed"
    try:
        reason = await _send(subscription, asked)
    except asyncio.CancelledError:
        if client.connection.is_closing:
            raise
    finally:
        subscription.close()
        if client.subscriptions.get(token) is subscription:
            del client.subscriptions[token]
        elif reason == "closed":
            reason = "superseded"
    return {"reason": reason, "last": subscription.last}


async def _send(subscription: Subscription, asked: SubscribeParams) -> str:
    if not await subscription.begin(asked.epoch, asked.from_):
        return "lagging"
    return await subscription.run()
