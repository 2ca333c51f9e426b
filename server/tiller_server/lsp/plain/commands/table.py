"""`workspace/executeCommand`: the agent for clients that know no method of ours.

A command answers at once (Helix gives up after 20 s); work that it started appears as work-done progress, as edits and
in the chat file. All arguments are optional.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from tiller_server.lsp import methods
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_array
from tiller_server.lsp.operations.proposal_commands import apply_proposal
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands import decisions, mode, model, prompt, tasks, views
from tiller_server.lsp.plain.commands.question_dialog import ask_again
from tiller_server.lsp.plain.commands.questions import answer
from tiller_server.lsp.plain.deadline import answer_within
from tiller_server.lsp.sessions.client import invalid_params

ExecuteCommandArguments = tuple[object, ...]
CommandHandler = Callable[[PlainClient, ExecuteCommandArguments], Awaitable[object]]


async def _answer(plain_client: PlainClient, arguments: ExecuteCommandArguments) -> object:
    return await (answer(plain_client, arguments) if arguments else ask_again(plain_client))


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
    "tiller.mergeTask": decisions.merge_task,
    "tiller.trust": decisions.trust,
    "tiller.rules": decisions.rules,
    "tiller.answer": _answer,
    "tiller.status": views.status,
    "tiller.chat": views.chat,
    "tiller.changes": views.changes,
    "tiller.mode": mode.mode,
    "tiller.plan": mode.plan,
    "tiller.model": model.model,
    "tiller.signIn": model.sign_in,
    "tiller.fix": tasks.fix,
    "tiller.implement": tasks.implement,
    "tiller.explain": tasks.explain,
    "tiller.review": tasks.review,
    "tiller.comment": tasks.comment,
}


async def execute(plain_client: PlainClient, params: dict[str, object]) -> object:
    """Answer `workspace/executeCommand`; long work continues in the background after the answer.

    An editor that hides what is answered shows an error as a message.

    Raises:
        RpcError: There is no such command, it cannot be used so, or it failed.
    """
    try:
        name, arguments = _command(params)
        return await answer_within(
            name,
            lambda: COMMANDS[name](plain_client, arguments),
            start=plain_client.client.host.start,
            show_error=partial(plain_client.show_message, kind=1),
        )
    except RpcError as error:
        if plain_client.client.editor.quirks_in_force()["silentAnswers"]:
            plain_client.show_message(error.message, kind=1)
        raise


def _command(params: dict[str, object]) -> tuple[str, tuple[object, ...]]:
    name, arguments = params.get("command"), params.get("arguments")
    if name not in COMMANDS:
        message = f"there is no command {name!r:.80}; there are {', '.join(methods.COMMANDS)}"
        raise invalid_params(message)
    listed = as_array(arguments) if arguments is not None else ()
    if listed is None:
        message = f"{name}: the arguments must be a list, got {arguments!r:.120}"
        raise invalid_params(message)
    return str(name), tuple(listed)
