"""The providers as a client sees them, and what it does to get into one."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from agent_core.kernel.errors import TillerError
from agent_core.providers.auth.oauth import way_of
from agent_core.providers.auth.oauth_tokens import LoginFailed
from agent_core.providers.catalog.provider_state import ProviderState
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.sessions.client import Front, bad
from tiller_server.lsp.sessions.sign_in import Door, Show

SHOWN_NAMES: Final = 12
NEVER: Final = frozenset({"embedded"})
"""APIs of providers that have no login."""
Known = TypeVar("Known")


async def providers_of(front: Front) -> Mapping[str, ProviderState]:
    """Return the providers as they are now: those of the session, to which its extensions bring, else those of the user."""
    # Without a folder there is no session, but an account all the same.
    with suppress(RpcError):
        _ = await front.hosted()
    known = await as_they_stand(front)
    return {name: one for name, one in known.items() if one.facts.api not in NEVER}


async def as_they_stand(front: Front) -> Mapping[str, ProviderState]:
    """Return all of them, also those that nobody signs in to; opens no session."""
    if front.bound is None:
        return (await front.host.registry(front.origin.env)).states()
    await refresh(front)
    return front.bound.session.models.providers()


def named(known: Mapping[str, Known], name: str | None, *, asked: str) -> Known:
    """Return a provider by its id.

    Args:
        known: Providers, by id.
        name: Id of a provider; None fails.
        asked: The method or command, for the error message.

    Raises:
        RpcError: No provider has that id; the text lists some that exist.
    """
    found = None if name is None else known.get(name)
    if found is not None:
        return found
    what = "say which provider" if name is None else f"no provider is called {name!r:.80}"
    message = f"{asked}: {what}; there are {', '.join([*known][:SHOWN_NAMES])} and others"
    raise bad(message)


def how_to_key(door: Door) -> str:
    """Return how a key is given: never through an editor, which keeps what is typed."""
    terminal = f"run `tiller auth login {door.provider}` in a terminal"
    if not door.variables:
        return f"{door.name} takes a key: {terminal}."
    return (
        f"{door.name} takes a key: {terminal}, or set {door.variables[0]} before the editor starts."
    )


def account(front: Front, one: ProviderState) -> dict[str, Any]:
    """Make the line of `agent/auth/status`; it names the key's place and never the key."""
    waits = one.auth == "missing" and front.host.signing_in.page(one.facts.id) is not None
    out = {
        "provider": one.facts.id,
        "state": "pending" if waits else one.auth,
        "name": one.facts.name,
        "login": "key" if one.facts.oauth is None else way_of(one.facts.oauth),
    }
    return out if one.source is None else {**out, "source": one.source}


async def log_in(front: Front, door: Door, *, show: Show) -> None:
    """Wait until the user has logged in; the session's models are there from then on.

    Raises:
        RpcError: It came to nothing; the text says why.
    """
    try:
        await front.host.signing_in.log_in(door, show=show)
    except (LoginFailed, TillerError) as error:
        message = f"not signed in to {door.name}: {error}"
        raise RpcError(
            REQUEST_FAILED, message, {"kind": "AuthRequired", "retryable": True}
        ) from error
    await refresh(front)


async def refresh(front: Front) -> None:
    """Have the session of a connection take note of what was stored or taken away."""
    if front.bound is not None:
        await front.bound.session.models.refresh()
