"""`agent/auth/status`: which providers can be asked."""

from typing import Any

from tiller_server.lsp.operations.accounts import account, named, providers_of
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import AuthStatusParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Return the providers, or the one that is named, and never a key."""
    asked = parse(AuthStatusParams, params, method="agent/auth/status")
    known = await providers_of(front)
    if asked.provider is None:
        return {"providers": [account(front, one) for one in known.values()]}
    one = named(known, asked.provider, asked="agent/auth/status")
    return {"providers": [account(front, one)]}
