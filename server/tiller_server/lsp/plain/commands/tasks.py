"""Commands that ask for what people ask for most: fix, implement, explain, review, and what a comment says."""

from typing import Any

from tiller_server.lsp.plain import task_prompts
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import CommandArguments, place_of, problems_of
from tiller_server.lsp.plain.commands.prompt import submit_text
from tiller_server.lsp.plain.task_prompts import TaskLocation
from tiller_server.lsp.sessions.client import invalid_params


async def fix(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Fix the problems that came with the command; without any, those of the file."""
    place = _place(plain_client, "tiller.fix", arguments)
    return await submit_text(
        plain_client, task_prompts.fix(place, problems_of(arguments)), delivery="auto"
    )


async def implement(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Finish what is begun."""
    place = _place(plain_client, "tiller.implement", arguments)
    return await submit_text(plain_client, task_prompts.implement(place), delivery="auto")


async def explain(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Explain a place; the answer is in the chat file."""
    return await _in_chat(
        plain_client, task_prompts.explain(_place(plain_client, "tiller.explain", arguments))
    )


async def review(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Review a file; the answer is in the chat file."""
    return await _in_chat(
        plain_client, task_prompts.review(_place(plain_client, "tiller.review", arguments))
    )


async def comment(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Do what the comments of a place ask for; without a place, those of the file."""
    place = _place(plain_client, "tiller.comment", arguments)
    requests = plain_client.requests(place.uri, place.lines0) or plain_client.requests(
        place.uri, None
    )
    if not requests:
        message = f"no comment of {place.name!r} asks for anything; write one such as `// tiller: make this faster`"
        raise invalid_params(message)
    return await submit_text(plain_client, task_prompts.asked_for(place, requests), delivery="auto")


def _place(plain_client: PlainClient, name: str, arguments: CommandArguments) -> TaskLocation:
    """Return the place that is meant: as the arguments say, else where the user was last."""
    found = place_of(
        name, arguments, root=plain_client.root(), make=plain_client.last_location.place
    )
    found = found or plain_client.last_location.latest()
    if found is None:
        message = f"{name} needs a file: open one, or name it as the argument"
        raise invalid_params(message)
    return found


async def _in_chat(plain_client: PlainClient, text: str) -> Any:
    client = plain_client.client
    taken = await plain_client.chat.submit(text)

    async def show() -> None:
        _ = await plain_client.chat.open(focus=True)

    # An editor may take seconds to show a file, and the answer is not to wait for it.
    client.host.start(show, what="the chat file")
    return taken
