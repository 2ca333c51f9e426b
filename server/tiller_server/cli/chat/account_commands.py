"""`/setup`, `/login`, `/logout` and `/model`: signing in to a provider and choosing a model from inside a conversation."""

import sys
import webbrowser
from collections.abc import Sequence
from typing import Final

from agent_core.assembly.models import keep_first_model
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.auth.oauth import LoginFailed, StoredKey
from agent_core.providers.auth.oauth_device import DeviceCode
from agent_core.providers.auth.store import AuthStore
from agent_core.resources.paths import app_paths
from tiller_server.cli.chat.context import ChatContext, ChatDialog, Refill
from tiller_server.cli.model_endpoint import add_endpoint, server_address
from tiller_server.cli.sign_in import checked_key, key_test_note, literal_key, log_in
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW
from tiller_server.cli.terminal.text import nearest_name

FIRST: Final = ("anthropic", "openai", "google", "openrouter", "github-copilot", "mistral")
"""Providers that most people sign in to; they come first in the list."""
MOST_NAMED: Final = 4
LATER: Final = "No model selected yet. /setup shows this again; /login and /model do one step each."


async def setup(chat: ChatContext, _: str) -> Refill | None:
    """Ask what to work with: a server of this machine, an account, or the address of a server; then choose the model."""
    models = chat.session.models
    chat.tell("Looking for model servers on this machine …")
    await models.refresh(servers="find")
    states = models.providers()
    local: dict[str, str] = {}
    rule_based: list[str] = []
    for one in models.available():
        provider = states[one.provider].provider
        if provider.api == "embedded":
            rule_based.append(one.ref)
        elif provider.keyless:
            _ = local.setdefault(provider.id, provider.name)
    accounts = [one for one in _with_account(chat) if one in FIRST[:MOST_NAMED]]
    rows = [
        *(f"{name}, which runs on this machine" for name in local.values()),
        *(f"Sign in to {_described(states[one])}" for one in accounts),
        "Sign in to another provider",
        "Connect to a server by its address",
        *(
            f"Try it without an account: {one}, a program that repairs Python tests"
            for one in rule_based
        ),
    ]
    chosen = await chat.choose("Use which model provider?", rows)
    if not isinstance(chosen, int):
        chat.tell(LATER)
        return Refill(chosen) if chosen else None
    names = [*local, *accounts]
    connect = len(names) + 1
    if chosen > connect:
        await choose_model(chat, rule_based[chosen - connect - 1])
        return None
    if chosen == connect:
        name = await _connect(chat)
    elif chosen < len(local):
        name = names[chosen]
    else:
        name = await _signed_in(chat, names[chosen] if chosen < len(names) else "")
    if name is not None:
        await choose_model(chat, "", provider=name)
    return None


async def _connect(chat: ChatContext) -> str | None:
    """Add a server that speaks OpenAI's chat wire; return its id, None: the user cancelled.

    Raises:
        UsageError: The address cannot be used, which is found before the key is asked for; or the server does not list
            its models.
    """
    url = await chat.ask("Address of the server, such as http://127.0.0.1:8000/v1 (Enter = cancel)")
    if url is None:
        chat.tell("Cancelled.")
        return None
    url = server_address(url)
    key = await chat.ask_secret("Its key (hidden, Enter = it needs none)")
    paths = chat.request.paths or app_paths(chat.request.env)
    name, listed = await add_endpoint(
        paths, url, provider=None, key=None if key is None else checked_key(key)
    )
    await chat.session.models.refresh()
    count = f"{len(listed)} models" if len(listed) > 1 else listed[0]
    chat.tell(f"Added {name} with {count}.", GREEN)
    return name


async def choose_model(chat: ChatContext, wanted: str, *, provider: str = "") -> None:
    """Use a model; without a name, the user chooses one.

    Args:
        chat: The conversation.
        wanted: Name of the model; empty: the user is asked.
        provider: Its models are listed, and the choice is the user's first; empty: those of all.

    Raises:
        ModelUnknown: No such model can be used.
    """
    models = chat.session.models
    # After a first sign-in the model in force is a default that nobody has chosen.
    before = None if provider else models.current
    if not provider:
        await models.refresh(servers="find")
    if not wanted:
        refs = [one.ref for one in models.available() if provider in ("", one.provider)]
        current = models.current.ref if models.current else None
        is_only = provider != "" and len(refs) == 1
        chosen = refs[0] if is_only else await ask_model(chat, refs, current=current)
        if chosen is None:
            return
        wanted = chosen
    facts = await models.choose(wanted)
    paths = chat.request.paths or app_paths(chat.request.env)
    kept = await keep_first_model(facts, before=before, paths=paths)
    scope = " for this and new sessions" if kept else ""
    chat.tell(f"Using {facts.ref}{scope}, thinking {models.thinking}", GREEN)


async def ask_model(dialog: ChatDialog, refs: Sequence[str], *, current: str | None) -> str | None:
    """Ask which model is to be used; return its name, or other text that was typed; None: the user cancelled."""
    chosen = await dialog.choose(
        f"Use which model? Now: {current or 'none'}",
        refs,
        marked=refs.index(current) if current is not None and current in refs else 0,
    )
    return refs[chosen] if isinstance(chosen, int) else chosen


async def login(chat: ChatContext, name: str) -> None:
    """Sign in to a provider, and choose its model where the session has none.

    Raises:
        UsageError: The provider is unknown, or the key cannot be one or was refused.
    """
    has_model = chat.session.models.current is not None
    signed_in = await _signed_in(chat, name)
    if signed_in is None:
        return
    if has_model:
        chat.tell("Choose its model with /model")
    else:
        await choose_model(chat, "", provider=signed_in)


async def _signed_in(chat: ChatContext, name: str) -> str | None:
    """Sign in to a provider: with its page where it has one, else with a key that is typed hidden; return its id.

    None: the user cancelled, or the provider refused.

    Raises:
        UsageError: The provider is unknown, or the key cannot be one or was refused.
    """
    state = await _chosen(chat, name, _with_account(chat))
    if state is None:
        return None
    provider = state.provider
    if provider.oauth is not None:
        try:
            entry = await log_in(
                provider.oauth,
                show_url=lambda url: _show_url(chat, url),
                show_code=lambda device: _show_code(chat, device),
            )
        except LoginFailed as error:
            chat.tell(str(error), YELLOW)
            return None
    else:
        key = await chat.ask_secret(f"Key of {provider.name} (hidden, Enter = cancel)")
        if not key:
            chat.tell("Cancelled.")
            return None
        key = checked_key(key)
        chat.tell(f"Testing the key at {provider.name} …")
        if note := await key_test_note(provider, key):
            chat.tell(note)
        entry = StoredKey(key=literal_key(key))
    await _store(chat).put(provider.id, entry)
    await chat.session.models.refresh()
    chat.tell(f"Signed in to {provider.name}.", GREEN)
    return provider.id


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
        nearest = nearest_name(name, names)
        hint = f"did you mean {nearest}?" if nearest else "/login shows the list"
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
