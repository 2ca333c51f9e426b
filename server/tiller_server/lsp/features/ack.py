"""`agent/ack`: how far a client has taken the events of a subscription."""

from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.subscription import ACK, AckParams


@feature(ACK)
async def ack(client: ConnectedClient, params: AckParams) -> None:
    """Return credit to the subscription of the token; a token without a subscription (any more) is ignored."""
    subscription = client.subscriptions.get(params.token)
    if subscription is not None:
        subscription.acknowledge(params.seq)
