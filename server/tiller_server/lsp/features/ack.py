"""`agent/ack`: how far a client has taken the events of a subscription."""

from typing import Any

from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import AckParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> None:
    """Return credit to the subscription of the token; a token without a subscription (any more) is ignored."""
    ack = parse(AckParams, params, method="agent/ack")
    subscription = client.subscriptions.get(ack.token)
    if subscription is not None:
        subscription.acknowledge(ack.seq)
