"""`agent/auth/status`: which providers can be asked."""

from typing import Any

from tiller_server.lsp.operations.accounts import account, find_provider, providers_of
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import AuthStatusParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the providers, or the one that is named, and never a key."""
    asked = parse(AuthStatusParams, params, method="agent/auth/status")
    providers = await providers_of(client)
    if asked.provider is None:
        return {"providers": [account(client, one) for one in providers.values()]}
    one = find_provider(providers, asked.provider, asked="agent/auth/status")
    return {"providers": [account(client, one)]}
