"""`agent/subscribe`: a session's events for as long as the client wants them."""

import asyncio
from typing import Literal

from tiller_server.lsp.events.flow_control import SendWindow
from tiller_server.lsp.events.subscription import Subscription
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.subscription import SUBSCRIBE, SubscribeParams, SubscribeResult


@session_feature(SUBSCRIBE)
async def subscribe(
    client: ConnectedClient, open_session: OpenSession, params: SubscribeParams
) -> SubscribeResult:
    """Send what was missed or a snapshot, then events, until the client cancels, the session ends or the client lags."""
    token = params.partial_result_token
    for other in tuple(client.subscriptions.values()):
        # What this one begins with is where the others are: a client may continue both as one.
        if other.has_begun and other.follows(open_session):
            await other.flush()
    subscription = client.subscribe(
        open_session,
        token,
        detail=params.detail or "full",
        flush_ms=params.flush_ms,
        send_window=None if params.ack in {None, False} else SendWindow(),
    )
    reason: Literal["closed", "superseded", "lagging"] = "closed"
    try:
        reason = await _send(subscription, params)
    except asyncio.CancelledError:
        if client.connection.is_closing:
            raise
    finally:
        subscription.close()
        if client.subscriptions.get(token) is subscription:
            del client.subscriptions[token]
        elif reason == "closed":
            reason = "superseded"
    return SubscribeResult(reason=reason, last=subscription.last)


async def _send(
    subscription: Subscription, params: SubscribeParams
) -> Literal["closed", "lagging"]:
    if not await subscription.begin(params.epoch, params.from_):
        return "lagging"
    return await subscription.run()
