"""Commands that let the user choose: a model, and a provider to sign in to."""

import logging
from contextlib import suppress
from functools import partial
from typing import Any, Final

from agent_core.assembly.models.default_model import keep_first_model
from agent_core.kernel.errors import TillerError
from agent_core.providers import ModelFacts
from agent_core.resources.paths import app_paths
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.operations.accounts import (
    SHOWN_NAMES,
    how_to_key,
    log_in,
    named,
    providers_of,
)
from tiller_server.lsp.plain.client import Room
from tiller_server.lsp.plain.commands.arguments import Arguments, words_of
from tiller_server.lsp.plain.paged_menu import Choice, choose
from tiller_server.lsp.sessions.sign_in import Door, Page, doors_of

SHOW_DOCUMENT: Final = "window/showDocument"
SHOW_S: Final = 10.0

_log = logging.getLogger(__name__)


async def model(room: Room, arguments: Arguments) -> object:
    """Choose the model that is named, or show those there are; the answer does not wait for the user's."""
    named = words_of("tiller.model", arguments, key="model")
    hosted = await room.front.hosted()
    if named:
        await hosted.session.models.refresh()
        return {"model": await _take(room, hosted, named)}
    models = hosted.session.models
    await models.refresh()
    listed = in_order(models.available(), scoped=[one.model.ref for one in models.scoped()])
    if not listed:
        room.tell("no provider can be asked yet; sign in with tiller.signIn.")
        return {"model": None}
    current = models.current

    async def ask() -> None:
        choices = [Choice(id=one.ref, title=one.ref) for one in listed]
        now = f"now {current.ref}" if current else "none is chosen"
        chosen = await _ask(room, "tiller.model", f"which model ({now})?", choices)
        if chosen is not None:
            try:
                _ = await _take(room, hosted, chosen)
            except RpcError as error:
                room.tell(error.message, kind=1)

    room.front.host.start(ask, what="the choice of a model")
    return {"model": None if current is None else current.ref}


async def sign_in(room: Room, arguments: Arguments) -> object:
    """Sign in to the provider that is named, or show those there are; the answer does not wait for the user's."""
    wanted = words_of("tiller.signIn", arguments, key="provider")
    front = room.front
    listed = doors_of((await providers_of(front)).values())
    door = named(listed, wanted, asked="tiller.signIn") if wanted else None

    async def ask() -> None:
        if door is not None:
            await _sign_in(room, door)
            return
        chosen = await _ask(
            room, "tiller.signIn", "sign in where?", [_choice(one) for one in listed.values()]
        )
        if chosen is not None:
            await _sign_in(room, named(listed, chosen, asked="tiller.signIn"))

    front.host.start(ask, what="a login", is_cut=True)
    return {"open": [one.provider for one in listed.values() if one.is_open]}


async def _sign_in(room: Room, door: Door) -> None:
    front = room.front
    if door.way == "key":
        room.tell(how_to_key(door))
        return

    def show(page: Page) -> None:
        front.host.start(partial(_show_page, room, page), what="the page of a login")

    try:
        await log_in(front, door, show=show)
    except RpcError as error:
        room.tell(error.message, kind=1)
        return
    room.tell(f"signed in to {door.name}; choose a model with tiller.model.")


async def _show_page(room: Room, page: Page) -> None:
    """Report the address, and have it opened where the editor can."""
    code = f" and type in the code {page.code}" if page.code else ""
    room.tell(f"to log in open {page.url}{code}")
    params = {"uri": page.url, "external": True, "takeFocus": True}
    if room.can_show:
        with suppress(RpcError, ConnectionError, TimeoutError):
            await room.front.connection.request(SHOW_DOCUMENT, params, timeout_s=SHOW_S)


def _choice(door: Door) -> Choice:
    state = "signed in" if door.is_open else "log in" if door.way == "login" else "key"
    return Choice(id=door.provider, title=f"{door.name} ({state})")


def in_order(models: tuple[ModelFacts, ...], *, scoped: list[str]) -> list[ModelFacts]:
    """Sort models, those that the user cycles through first; omit embedded ones, which are used only by name. Pure."""
    ranks = {ref: rank for rank, ref in enumerate(scoped)}
    found = [one for one in models if one.api != "embedded"]
    return sorted(found, key=lambda one: ranks.get(one.ref, len(ranks)))


async def _take(room: Room, hosted: Any, ref: str) -> str:
    before = hosted.session.models.current
    try:
        chosen = await hosted.session.models.choose(ref)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    _ = await keep_first_model(chosen, before=before, paths=app_paths(room.front.origin.env))
    await room.front.flush()
    room.tell(f"the model is {chosen.ref} now.")
    return chosen.ref


async def _ask(room: Room, command: str, question: str, choices: list[Choice]) -> str | None:
    bound = room.front.bound
    if bound is not None and bound.session.info.snapshot().pending:
        room.tell("the agent waits for an answer first; tiller.answer shows what it asks.")
        return None
    try:
        return await choose(room.front.dialogs.menu, question, choices)
    except ConnectionError:
        return None
    except RpcError as error:
        _log.warning("The client shows no list to choose from: %s", error.message)
        listed = ", ".join(one.id for one in choices[:SHOWN_NAMES])
        room.tell(f"this editor shows no list; name one behind {command}: {listed}")
        return None
