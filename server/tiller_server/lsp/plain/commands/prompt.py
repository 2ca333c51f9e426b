"""Commands that say something, and that say when it is enough."""

from collections.abc import Sequence
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.operations.prompt_context import beside
from tiller_server.lsp.operations.session_switch import open_session
from tiller_server.lsp.plain.client import Room
from tiller_server.lsp.plain.commands.arguments import Arguments, check_nothing, words_of
from tiller_server.lsp.plain.context_inference import seen_in
from tiller_server.lsp.sessions.caller_environment import say_as
from tiller_server.lsp.sessions.client import bad
from tiller_server.lsp.wire import Block, TextBlock


async def send(room: Room, arguments: Arguments) -> object:
    """Send the arguments as a prompt, or without any the text under the last heading of the chat file."""
    words = words_of("tiller.send", arguments)
    if words:
        return await _say_there(room, words, delivery="auto")
    sent = await room.front.chat.send()
    if sent is None:
        _ = await room.front.chat.open(focus=True)
        room.tell("there is nothing to send: write under the last `## You` of the chat file first.")
        return {"accepted": "nothing"}
    return sent


async def steer(room: Room, arguments: Arguments) -> object:
    """Send a message into the active run; without a run it starts one."""
    words = words_of("tiller.steer", arguments)
    if not words:
        message = (
            "tiller.steer takes the words to say as its argument; without a run they begin one"
        )
        raise bad(message)
    return await _say_there(room, words, delivery="steer")


async def stop(room: Room, arguments: Arguments) -> object:
    """Stop what goes on, whatever stands behind the command."""
    _ = arguments
    front = room.front
    hosted = await front.hosted()
    result = await hosted.session.abort()
    await front.flush()
    if result.status == "alreadyEnded":
        room.tell("nothing is running.")
    return {"status": result.status, "seq": result.seq}


async def compact(room: Room, arguments: Arguments) -> object:
    """Summarise the older part of the conversation."""
    words = words_of("tiller.compact", arguments, key="instructions")
    front = room.front
    hosted = await front.hosted()
    try:
        receipt = await hosted.session.compact(words or None)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    await front.flush()
    if receipt.compaction is None:
        room.tell(f"nothing was summarised: {receipt.why}")
    return {"compaction": receipt.compaction, "seq": receipt.seq, "why": receipt.why}


async def new(room: Room, arguments: Arguments) -> object:
    """Begin a new session; the old one stays, and what goes on in it goes on."""
    check_nothing("tiller.new", arguments)
    hosted = await open_session(room.front, "new", root=None)
    room.tell("a new session has begun.")
    return {"session": hosted.session.id}


async def say(room: Room, words: str, *, delivery: str) -> dict[str, Any]:
    """Send a prompt of the user, and report it when the prompt has to wait."""
    return await _say(room, [TextBlock(text=words)], delivery=delivery)


async def _say_there(room: Room, words: str, *, delivery: str) -> dict[str, Any]:
    """Send a prompt with the user's position in the editor, which it may mean without naming it."""
    front = room.front
    hosted = await front.hosted()
    seen = seen_in(front, room.touched)
    content, shown = beside(front, hosted, [TextBlock(text=words)], seen)
    taken = await _say(room, content, delivery=delivery)
    if shown is not None:
        front.editor.attention.told(hosted.session.id, shown)
    return taken


async def _say(room: Room, content: Sequence[Block], *, delivery: str) -> dict[str, Any]:
    front = room.front
    hosted = await front.hosted()
    taken = (await say_as(front, hosted, content, delivery=delivery)).answer()
    if taken["accepted"] == "queued":
        room.tell("that is said when what goes on is over.")
    return taken
