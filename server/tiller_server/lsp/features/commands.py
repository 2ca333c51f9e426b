"""`workspace/executeCommand`: the agent for clients that know no method of ours.

A command answers at once (Helix gives up after 20 s); work that it started appears as work-done progress, as edits and
in the chat file. All arguments are optional.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from tiller_server.lsp.plain import choosing, deciding, requesting, showing, steering
from tiller_server.lsp.plain.answering import answer
from tiller_server.lsp.plain.asking_again import ask_again
from tiller_server.lsp.plain.at_once import at_once
from tiller_server.lsp.plain.room import Room
from tiller_server.lsp.proposed import apply_proposal

Arguments = tuple[Any, ...]
Command = Callable[[Room, Arguments], Awaitable[object]]


async def _answer(room: Room, arguments: Arguments) -> object:
    return await (answer(room.front, arguments) if arguments else ask_again(room))


async def _apply(room: Room, arguments: Arguments) -> object:
    return await apply_proposal(room.front, arguments)


COMMANDS: Final[Mapping[str, Command]] = {
    "tiller.send": steering.send,
    "tiller.steer": steering.steer,
    "tiller.stop": steering.stop,
    "tiller.compact": steering.compact,
    "tiller.new": steering.new,
    "tiller.accept": deciding.accept,
    "tiller.reject": deciding.reject,
    "tiller.apply": _apply,
    "tiller.restore": deciding.restore,
    "tiller.trust": deciding.trust,
    "tiller.rules": deciding.rules,
    "tiller.answer": _answer,
    "tiller.status": showing.status,
    "tiller.chat": showing.chat,
    "tiller.changes": showing.changes,
    "tiller.model": choosing.model,
    "tiller.signIn": choosing.sign_in,
    "tiller.fix": requesting.fix,
    "tiller.implement": requesting.implement,
    "tiller.explain": requesting.explain,
    "tiller.review": requesting.review,
    "tiller.comment": requesting.comment,
}


async def run(room: Room, name: str, arguments: Arguments) -> object:
    """Run a command; long work continues in the background after the answer."""
    return await at_once(
        name,
        lambda: COMMANDS[name](room, arguments),
        start=room.front.host.start,
        tell=partial(room.tell, kind=1),
    )
