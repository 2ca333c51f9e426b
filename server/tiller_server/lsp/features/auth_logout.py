"""`agent/auth/logout`: forget what is stored for a provider."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.operations.accounts import account, named, providers_of, refresh
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import AuthLogoutParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Forget it; gives how the provider stands then, for the environment may open it all the same."""
    asked = parse(AuthLogoutParams, params, method="agent/auth/logout")
    one = named(await providers_of(front), asked.provider, asked="agent/auth/logout")
    try:
        _ = await front.host.signing_in.log_out(one.facts.id)
    except TillerError as error:
        raise rpc_error(error) from error
    await refresh(front)
    left = await providers_of(front)
    return {"providers": [account(front, left.get(one.facts.id, one))]}
