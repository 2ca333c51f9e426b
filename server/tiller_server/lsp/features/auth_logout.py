"""`agent/auth/logout`: forget what is stored for a provider."""

from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.accounts import account, find_provider, providers_of, refresh
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.accounts import AUTH_LOGOUT, AuthLogoutParams, AuthStatusResult


@feature(AUTH_LOGOUT)
async def auth_logout(client: ConnectedClient, params: AuthLogoutParams) -> AuthStatusResult:
    """Forget it; return the provider's state then, for the environment may hold a key all the same."""
    one = find_provider(await providers_of(client), params.provider, asked=AUTH_LOGOUT.name)
    _ = await client.host.signing_in.log_out(one.provider.id)
    await refresh(client)
    left = await providers_of(client)
    return AuthStatusResult(providers=[account(client, left.get(one.provider.id, one))])
