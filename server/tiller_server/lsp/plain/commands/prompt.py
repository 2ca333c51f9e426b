"""Commands that say something, and that say when it is enough."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.operations.prompt_context import attach_editor_context
from tiller_server.lsp.operations.session_switch import switch_session
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import (
    CommandArguments,
    check_nothing,
    text_argument,
)
from tiller_server.lsp.plain.context_inference import infer_editor_context
from tiller_server.lsp.sessions.client import invalid_params
from tiller_server.lsp.sessions.prompt_submission import submit_as_client
from tiller_server.lsp.wire.blocks import Block, TextBlock


async def send(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Send the arguments as a prompt, or without any the text under the last heading of the chat file."""
    text = text_argument("tiller.send", arguments)
    if text:
        return await _submit_with_context(plain_client, text, delivery="auto")
    sent = await plain_client.chat.send()
    if sent is None:
        _ = await plain_client.chat.open(focus=True)
        plain_client.show_message(
            "there is nothing to send: write under the last `## You` of the chat file first."
        )
        return {"accepted": "nothing"}
    return sent


async def steer(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Send a message into the active run; without a run it starts one."""
    text = text_argument("tiller.steer", arguments)
    if not text:
        message = (
            "tiller.steer takes the words to say as its argument; without a run they begin one"
        )
        raise invalid_params(message)
    return await _submit_with_context(plain_client, text, delivery="steer")


async def stop(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Stop what goes on, whatever stands behind the command."""
    _ = arguments
    client = plain_client.client
    loaded_session = await client.resolve_session()
    result = await loaded_session.session.abort()
    await client.flush()
    if result.status == "alreadyEnded":
        plain_client.show_message("nothing is running.")
    return {"status": result.status, "seq": result.seq}


async def compact(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Summarise the older part of the conversation."""
    instructions = text_argument("tiller.compact", arguments, key="instructions")
    client = plain_client.client
    loaded_session = await client.resolve_session()
    try:
        receipt = await loaded_session.session.compact(instructions or None)
    except TillerError as error:
        raise to_rpc_error(error, session=loaded_session.session.id) from error
    await client.flush()
    if receipt.compaction is None:
        plain_client.show_message(f"nothing was summarised: {receipt.why}")
    return {"compaction": receipt.compaction, "seq": receipt.seq, "why": receipt.why}


async def new(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Begin a new session; the old one stays, and what goes on in it goes on."""
    check_nothing("tiller.new", arguments)
    loaded_session = await switch_session(plain_client.client, "new", root=None)
    plain_client.show_message("a new session has begun.")
    return {"session": loaded_session.session.id}


async def submit_text(plain_client: PlainClient, text: str, *, delivery: str) -> JsonObject:
    """Send a prompt of the user, and report it when the prompt has to wait."""
    return await _submit(plain_client, [TextBlock(text=text)], delivery=delivery)


async def _submit_with_context(
    plain_client: PlainClient, text: str, *, delivery: str
) -> JsonObject:
    """Send a prompt with the user's position in the editor, which it may mean without naming it."""
    client = plain_client.client
    loaded_session = await client.resolve_session()
    seen = infer_editor_context(client, plain_client.last_location)
    content, shown = attach_editor_context(client, loaded_session, [TextBlock(text=text)], seen)
    taken = await _submit(plain_client, content, delivery=delivery)
    if shown is not None:
        client.editor.context_tracker.mark_sent(loaded_session.session.id, shown)
    return taken


async def _submit(
    plain_client: PlainClient, content: Sequence[Block], *, delivery: str
) -> JsonObject:
    client = plain_client.client
    loaded_session = await client.resolve_session()
    taken = (await submit_as_client(client, loaded_session, content, delivery=delivery)).answer()
    if taken["accepted"] == "queued":
        plain_client.show_message("that is said when what goes on is over.")
    return taken
