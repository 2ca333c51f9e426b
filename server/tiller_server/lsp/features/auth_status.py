"""`agent/auth/status`: which providers can be asked."""

from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.accounts import account, find_provider, providers_of
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.accounts import AUTH_STATUS, AuthStatusParams, AuthStatusResult


@feature(AUTH_STATUS)
async def auth_status(client: ConnectedClient, params: AuthStatusParams) -> AuthStatusResult:
    """Return the providers, or the one that is named, and never a key."""
    providers = await providers_of(client)
    if params.provider is None:
        return AuthStatusResult(providers=[account(client, one) for one in providers.values()])
    one = find_provider(providers, params.provider, asked=AUTH_STATUS.name)
    return AuthStatusResult(providers=[account(client, one)])
