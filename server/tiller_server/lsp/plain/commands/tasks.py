"""Commands that ask for what people ask for most: fix, implement, explain, review, and what a comment says."""

from typing import Any

from tiller_server.lsp.plain import task_prompts
from tiller_server.lsp.plain.client import Room
from tiller_server.lsp.plain.commands.arguments import Arguments, place_of, problems_of
from tiller_server.lsp.plain.commands.prompt import say
from tiller_server.lsp.plain.task_prompts import Place
from tiller_server.lsp.sessions.client import bad


async def fix(room: Room, arguments: Arguments) -> object:
    """Fix the problems that came with the command; without any, those of the file."""
    place = _place(room, "tiller.fix", arguments)
    return await say(room, task_prompts.fix(place, problems_of(arguments)), delivery="auto")


async def implement(room: Room, arguments: Arguments) -> object:
    """Finish what is begun."""
    place = _place(room, "tiller.implement", arguments)
    return await say(room, task_prompts.implement(place), delivery="auto")


async def explain(room: Room, arguments: Arguments) -> object:
    """Explain a place; the answer is in the chat file."""
    return await _in_chat(room, task_prompts.explain(_place(room, "tiller.explain", arguments)))


async def review(room: Room, arguments: Arguments) -> object:
    """Review a file; the answer is in the chat file."""
    return await _in_chat(room, task_prompts.review(_place(room, "tiller.review", arguments)))


async def comment(room: Room, arguments: Arguments) -> object:
    """Do what the comments of a place ask for; without a place, those of the file."""
    place = _place(room, "tiller.comment", arguments)
    requests = room.requests(place.uri, place.lines0) or room.requests(place.uri, None)
    if not requests:
        message = f"no comment of {place.name!r} asks for anything; write one such as `// tiller: make this faster`"
        raise bad(message)
    return await say(room, task_prompts.asked_for(place, requests), delivery="auto")


def _place(room: Room, name: str, arguments: Arguments) -> Place:
    """Return the place that is meant: as the arguments say, else where the user was last."""
    found = place_of(name, arguments, root=room.root(), make=room.touched.place)
    found = found or room.touched.latest()
    if found is None:
        message = f"{name} needs a file: open one, or name it as the argument"
        raise bad(message)
    return found


async def _in_chat(room: Room, words: str) -> Any:
    front = room.front
    taken = await front.chat.say(words)

    async def show() -> None:
        _ = await front.chat.open(focus=True)

    # An editor may take seconds to show a file, and the answer is not to wait for it.
    front.host.start(show, what="the chat file")
    return taken
