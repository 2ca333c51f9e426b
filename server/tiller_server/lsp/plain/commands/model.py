"""Commands that let the user choose: a model, and a provider to sign in to."""

import logging
from contextlib import suppress
from functools import partial
from typing import Final

from agent_core.assembly.models import keep_first_model
from agent_core.kernel.errors import TillerError
from agent_core.providers import ModelInfo
from agent_core.resources.paths import app_paths
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.operations.accounts import (
    SHOWN_NAMES,
    find_provider,
    key_instructions,
    log_in,
    providers_of,
)
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import CommandArguments, text_argument
from tiller_server.lsp.plain.paged_menu import MenuChoice, choose
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.sign_in import SignInMethod, VerificationPage, sign_in_methods

SHOW_DOCUMENT: Final = "window/showDocument"
SHOW_S: Final = 10.0

_log = logging.getLogger(__name__)


async def model(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Choose the model that is named, or show those there are; the answer does not wait for the user's."""
    named = text_argument("tiller.model", arguments, key="model")
    open_session = await plain_client.client.resolve_session()
    if named:
        await open_session.session.models.refresh()
        return {"model": await _take(plain_client, open_session, named)}
    models = open_session.session.models
    await models.refresh()
    listed = in_order(models.available(), scoped=[one.model.ref for one in models.scoped()])
    if not listed:
        plain_client.show_message("no provider can be asked yet; sign in with tiller.signIn.")
        return {"model": None}
    current = models.current

    async def offer() -> None:
        choices = [MenuChoice(id=one.ref, title=one.ref) for one in listed]
        now = f"now {current.ref}" if current else "none is chosen"
        chosen = await ask(plain_client, "tiller.model", f"which model ({now})?", choices)
        if chosen is not None:
            try:
                _ = await _take(plain_client, open_session, chosen)
            except RpcError as error:
                plain_client.show_message(error.message, kind=1)

    plain_client.client.host.start(offer, what="the choice of a model")
    return {"model": None if current is None else current.ref}


async def sign_in(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Sign in to the provider that is named, or show those there are; the answer does not wait for the user's."""
    wanted = text_argument("tiller.signIn", arguments, key="provider")
    client = plain_client.client
    listed = sign_in_methods((await providers_of(client)).values())
    door = find_provider(listed, wanted, asked="tiller.signIn") if wanted else None

    async def offer() -> None:
        if door is not None:
            await _sign_in(plain_client, door)
            return
        chosen = await ask(
            plain_client,
            "tiller.signIn",
            "sign in where?",
            [_choice(one) for one in listed.values()],
        )
        if chosen is not None:
            await _sign_in(plain_client, find_provider(listed, chosen, asked="tiller.signIn"))

    client.host.start(offer, what="a login", is_cut=True)
    return {"open": [one.provider for one in listed.values() if one.is_open]}


async def _sign_in(plain_client: PlainClient, door: SignInMethod) -> None:
    client = plain_client.client
    if door.way == "key":
        plain_client.show_message(key_instructions(door))
        return

    def show(page: VerificationPage) -> None:
        client.host.start(partial(_show_page, plain_client, page), what="the page of a login")

    try:
        await log_in(client, door, show=show)
    except RpcError as error:
        plain_client.show_message(error.message, kind=1)
        return
    plain_client.show_message(f"signed in to {door.name}; choose a model with tiller.model.")


async def _show_page(plain_client: PlainClient, page: VerificationPage) -> None:
    """Report the address, and have it opened where the editor can."""
    code = f" and type in the code {page.code}" if page.code else ""
    plain_client.show_message(f"to log in open {page.url}{code}")
    params = {"uri": page.url, "external": True, "takeFocus": True}
    if plain_client.can_show:
        with suppress(RpcError, ConnectionError, TimeoutError):
            await plain_client.client.connection.request(SHOW_DOCUMENT, params, timeout_s=SHOW_S)


def _choice(door: SignInMethod) -> MenuChoice:
    state = "signed in" if door.is_open else "log in" if door.way == "login" else "key"
    return MenuChoice(id=door.provider, title=f"{door.name} ({state})")


def in_order(models: tuple[ModelInfo, ...], *, scoped: list[str]) -> list[ModelInfo]:
    """Sort models, those that the user cycles through first; omit embedded ones, which are used only by name. Pure."""
    ranks = {ref: rank for rank, ref in enumerate(scoped)}
    found = [one for one in models if one.api != "embedded"]
    return sorted(found, key=lambda one: ranks.get(one.ref, len(ranks)))


async def _take(plain_client: PlainClient, open_session: OpenSession, ref: str) -> str:
    before = open_session.session.models.current
    try:
        chosen = await open_session.session.models.choose(ref)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    _ = await keep_first_model(
        chosen, before=before, paths=app_paths(plain_client.client.origin.env)
    )
    await plain_client.client.flush()
    plain_client.show_message(f"the model is {chosen.ref} now.")
    return chosen.ref


async def ask(
    plain_client: PlainClient, command: str, question: str, choices: list[MenuChoice]
) -> str | None:
    """Ask the user to choose; None: they did not, or the editor shows no list, and was told the names.

    Args:
        plain_client: The client.
        command: The command that takes a choice as its argument.
        question: The question.
        choices: The choices, in their order.
    """
    bound = plain_client.client.bound
    if bound is not None and bound.session.info.snapshot().pending:
        plain_client.show_message(
            "the agent waits for an answer first; tiller.answer shows what it asks."
        )
        return None
    try:
        return await choose(plain_client.client.dialogs.menu, question, choices)
    except ConnectionError:
        return None
    except RpcError as error:
        _log.warning("The client shows no list to choose from: %s", error.message)
        listed = ", ".join(one.id for one in choices[:SHOWN_NAMES])
        plain_client.show_message(f"this editor shows no list; name one behind {command}: {listed}")
        return None
