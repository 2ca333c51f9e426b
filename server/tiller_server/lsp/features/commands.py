"""`workspace/executeCommand`: the agent for clients that know no method of ours.

A command answers at once (Helix gives up after 20 s); work that it started appears as work-done progress, as edits and
in the chat file. All arguments are optional.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from tiller_server.lsp.operations.proposal_commands import apply_proposal
from tiller_server.lsp.plain.client import Room
from tiller_server.lsp.plain.commands import decisions, model, prompt, tasks, views
from tiller_server.lsp.plain.commands.question_dialog import ask_again
from tiller_server.lsp.plain.commands.questions import answer
from tiller_server.lsp.plain.deadline import at_once

Arguments = tuple[Any, ...]
Command = Callable[[Room, Arguments], Awaitable[object]]


async def _answer(room: Room, arguments: Arguments) -> object:
    return await (answer(room.front, arguments) if arguments else ask_again(room))


async def _apply(room: Room, arguments: Arguments) -> object:
    return await apply_proposal(room.front, arguments)


COMMANDS: Final[Mapping[str, Command]] = {
    "tiller.send": prompt.send,
    "tiller.steer": prompt.steer,
    "tiller.stop": prompt.stop,
    "tiller.compact": prompt.compact,
    "tiller.new": prompt.new,
    "tiller.accept": decisions.accept,
    "tiller.reject": decisions.reject,
    "tiller.apply": _apply,
    "tiller.restore": decisions.restore,
    "tiller.trust": decisions.trust,
    "tiller.rules": decisions.rules,
    "tiller.answer": _answer,
    "tiller.status": views.status,
    "tiller.chat": views.chat,
    "tiller.changes": views.changes,
    "tiller.model": model.model,
    "tiller.signIn": model.sign_in,
    "tiller.fix": tasks.fix,
    "tiller.implement": tasks.implement,
    "tiller.explain": tasks.explain,
    "tiller.review": tasks.review,
    "tiller.comment": tasks.comment,
}


async def run(room: Room, name: str, arguments: Arguments) -> object:
    """Run a command; long work continues in the background after the answer."""
    return await at_once(
        name,
        lambda: COMMANDS[name](room, arguments),
        start=room.front.host.start,
        tell=partial(room.tell, kind=1),
    )
