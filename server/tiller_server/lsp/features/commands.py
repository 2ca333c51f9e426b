"""`workspace/executeCommand`: the agent for clients that know no method of ours.

A command answers at once (Helix gives up after 20 s); work that it started appears as work-done progress, as edits and
in the chat file. All arguments are optional.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from tiller_server.lsp.operations.proposal_commands import apply_proposal
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands import decisions, model, prompt, tasks, views
from tiller_server.lsp.plain.commands.question_dialog import ask_again
from tiller_server.lsp.plain.commands.questions import answer
from tiller_server.lsp.plain.deadline import answer_within

ExecuteCommandArguments = tuple[Any, ...]
CommandHandler = Callable[[PlainClient, ExecuteCommandArguments], Awaitable[object]]


async def _answer(plain_client: PlainClient, arguments: ExecuteCommandArguments) -> object:
    return await (answer(plain_client.client, arguments) if arguments else ask_again(plain_client))


async def _apply(plain_client: PlainClient, arguments: ExecuteCommandArguments) -> object:
    return await apply_proposal(plain_client.client, arguments)


COMMANDS: Final[Mapping[str, CommandHandler]] = {
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


async def run(plain_client: PlainClient, name: str, arguments: ExecuteCommandArguments) -> object:
    """Run a command; long work continues in the background after the answer."""
    return await answer_within(
        name,
        lambda: COMMANDS[name](plain_client, arguments),
        start=plain_client.client.host.start,
        show_error=partial(plain_client.show_message, kind=1),
    )
