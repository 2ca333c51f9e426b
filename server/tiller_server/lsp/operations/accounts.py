"""The providers as a client sees them, and what it does to get into one."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeVar

from agent_core.kernel.errors import TillerError
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.auth.oauth import LoginFailed, way_of
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.sessions.sign_in import ShowVerificationPage, SignInMethod
from tiller_server.lsp.wire.accounts import AuthAccount

SHOWN_NAMES: Final = 12
NEVER: Final = frozenset({"embedded"})
"""APIs of providers that have no login."""
ProviderT = TypeVar("ProviderT")


async def providers_of(client: ConnectedClient) -> Mapping[str, ProviderState]:
    """Return the providers as they are now: those of the session, to which its extensions bring, else those of the user."""
    # Without a folder there is no session, but an account all the same.
    with suppress(RpcError):
        _ = await client.resolve_session()
    states = await account_status(client)
    return {name: one for name, one in states.items() if one.provider.api not in NEVER}


async def account_status(client: ConnectedClient) -> Mapping[str, ProviderState]:
    """Return all of them, also those that nobody signs in to; opens no session."""
    if client.bound is None:
        return (await client.host.registry(client.origin.env)).states()
    await refresh(client)
    return client.bound.session.models.providers()


def find_provider(providers: Mapping[str, ProviderT], name: str | None, *, asked: str) -> ProviderT:
    """Return a provider by its id.

    Args:
        providers: Providers, by id.
        name: Id of a provider; None fails.
        asked: The method or command, for the error message.

    Raises:
        RpcError: No provider has that id; the text lists some that exist.
    """
    found = None if name is None else providers.get(name)
    if found is not None:
        return found
    what = "say which provider" if name is None else f"no provider is called {name!r:.80}"
    message = f"{asked}: {what}; there are {', '.join([*providers][:SHOWN_NAMES])} and others"
    raise invalid_params(message)


def key_instructions(method: SignInMethod) -> str:
    """Return how a key is given: never through an editor, which keeps what is typed."""
    terminal = f"run `tiller auth login {method.provider}` in a terminal"
    if not method.variables:
        return f"{method.name} takes a key: {terminal}."
    return f"{method.name} takes a key: {terminal}, or set {method.variables[0]} before the editor starts."


def account(client: ConnectedClient, one: ProviderState) -> AuthAccount:
    """Return the line of `agent/auth/status`; it names the key's place and never the key."""
    waits = one.auth == "missing" and client.host.signing_in.page(one.provider.id) is not None
    return AuthAccount(
        provider=one.provider.id,
        state="pending" if waits else one.auth,
        name=one.provider.name,
        login="key" if one.provider.oauth is None else way_of(one.provider.oauth),
        source=one.source,
    )


async def log_in(
    client: ConnectedClient, method: SignInMethod, *, show: ShowVerificationPage
) -> None:
    """Wait until the user has logged in; the session's models are there from then on.

    Raises:
        RpcError: It came to nothing; the text says why.
    """
    try:
        await client.host.signing_in.log_in(method, show=show)
    except (LoginFailed, TillerError) as error:
        message = f"not signed in to {method.name}: {error}"
        raise RpcError(
            REQUEST_FAILED, message, {"kind": "AuthRequired", "retryable": True}
        ) from error
    await refresh(client)


async def refresh(client: ConnectedClient) -> None:
    """Have the session of a connection take note of what was stored or taken away."""
    if client.bound is not None:
        await client.bound.session.models.refresh()
