"""`agent/auth/logout`: forget what is stored for a provider."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.operations.accounts import account, find_provider, providers_of, refresh
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import AuthLogoutParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Forget it; gives how the provider stands then, for the environment may open it all the same."""
    asked = parse(AuthLogoutParams, params, method="agent/auth/logout")
    one = find_provider(await providers_of(client), asked.provider, asked="agent/auth/logout")
    try:
        _ = await client.host.signing_in.log_out(one.provider.id)
    except TillerError as error:
        raise to_rpc_error(error) from error
    await refresh(client)
    left = await providers_of(client)
    return {"providers": [account(client, left.get(one.provider.id, one))]}
