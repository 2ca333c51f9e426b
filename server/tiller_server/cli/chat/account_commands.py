"""`/login` and `/logout`: signing in to a provider from inside a conversation."""

import sys
import webbrowser
from difflib import get_close_matches
from typing import Final

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.auth.oauth import LoginFailed, StoredKey
from agent_core.providers.auth.oauth_device import DeviceCode
from agent_core.providers.auth.store import AuthStore
from agent_core.resources.paths import app_paths
from tiller_server.cli.chat.context import ChatContext
from tiller_server.cli.sign_in import checked_key, literal_key, log_in
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW

FIRST: Final = ("anthropic", "openai", "google", "openrouter", "github-copilot", "mistral")
"""Providers that most people sign in to; they come first in the list."""


async def login(chat: ChatContext, name: str) -> None:
    """Sign in to a provider: with its page where it has one, else with a key that is typed hidden.

    Raises:
        UsageError: The provider is unknown, or the key cannot be one.
    """
    states = _with_account(chat)
    state = await _chosen(chat, name, states)
    if state is None:
        return
    provider = state.provider
    store = _store(chat)
    if provider.oauth is not None:
        try:
            entry = await log_in(
                provider.oauth,
                show_url=lambda url: _show_url(chat, url),
                show_code=lambda device: _show_code(chat, device),
            )
        except LoginFailed as error:
            chat.tell(str(error), YELLOW)
            return
    else:
        key = await chat.ask_secret(f"Key of {provider.name} (hidden, Enter = cancel)")
        if not key:
            chat.tell("Cancelled.")
            return
        entry = StoredKey(key=literal_key(checked_key(key)))
    await store.put(provider.id, entry)
    await chat.session.models.refresh()
    chat.tell(f"Signed in to {provider.name}. Choose its model with /model", GREEN)


async def logout(chat: ChatContext, name: str) -> None:
    """Remove the stored key or login of a provider."""
    store = _store(chat)
    await store.load()
    stored = [one for one in _with_account(chat) if store.entry(one) is not None]
    if not name:
        chosen = await chat.choose("Sign out of which provider?", stored) if stored else None
        if not stored:
            chat.tell("No key or login is stored.")
        if chosen is None:
            return
        name = stored[chosen] if isinstance(chosen, int) else chosen
    if not await store.remove(name):
        chat.tell(f"Nothing is stored for {name}.", YELLOW)
        return
    await chat.session.models.refresh()
    chat.tell(f"Signed out of {name}.", GREEN)


def _store(chat: ChatContext) -> AuthStore:
    paths = chat.request.paths or app_paths(chat.request.env)
    return AuthStore(paths.auth, clock=SystemClock())


def _with_account(chat: ChatContext) -> dict[str, ProviderState]:
    """Return the providers that need a key or a login, the best known first."""
    states = {
        name: state
        for name, state in chat.session.models.providers().items()
        if not state.provider.keyless and state.provider.api != "embedded"
    }
    return {name: states[name] for name in sorted(states, key=_place)}


def _place(name: str) -> tuple[int, str]:
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


async def _chosen(
    chat: ChatContext, name: str, states: dict[str, ProviderState]
) -> ProviderState | None:
    names = [*states]
    if not name:
        width = max(map(len, names))
        rows = [f"{one:<{width}}  {_described(states[one])}" for one in names]
        chosen = await chat.choose("Sign in to which provider?", rows)
        if chosen is None:
            return None
        name = names[chosen] if isinstance(chosen, int) else chosen
    if name not in states:
        nearest = get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "/login shows the list"
        message = f"unknown provider {name!r}; {hint}"
        raise UsageError(message)
    return states[name]


def _described(state: ProviderState) -> str:
    return f"{state.provider.name}{' (signed in)' if state.source else ''}"


def _show_url(chat: ChatContext, url: str) -> None:
    chat.tell(f"Sign in with a browser on this machine:\n\n  {url}\n")
    if sys.stderr.isatty():
        _ = webbrowser.open(url)


def _show_code(chat: ChatContext, device: DeviceCode) -> None:
    chat.tell(f"Open {device.url} and enter the code {device.code}")
