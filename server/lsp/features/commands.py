"""`workspace/executeCommand`: the agent for clients that know no method of ours.

A command answers at once (Helix gives up after 20 s); what it started is seen as work-done progress and as edits.
"""

from typing import Any

from agent_core.kernel.errors import TillerError
from server.lsp import pictures
from server.lsp.failures import rpc_error
from server.lsp.front import Front, bad
from server.lsp.proposed import apply_proposal
from server.lsp.reviewing import decide
from server.lsp.speaking import say_as


async def run(front: Front, name: str, arguments: tuple[Any, ...]) -> object:
    """Run a command; all arguments may be left out but the words of `send` and `steer`."""
    match name:
        case "tiller.accept":
            return await decide(front, "accept", arguments)
        case "tiller.reject":
            return await decide(front, "reject", arguments)
        case "tiller.apply":
            return await apply_proposal(front, arguments)
        case _:
            return await _run(front, await front.hosted(), name, arguments)


async def _run(front: Front, hosted: Any, name: str, arguments: tuple[Any, ...]) -> object:
    match name:
        case "tiller.send":
            return await _say(front, hosted, name, arguments, delivery="auto")
        case "tiller.steer":
            return await _say(front, hosted, name, arguments, delivery="steer")
        case "tiller.stop":
            result = await hosted.session.abort()
            await front.flush()
            return {"status": result.status, "seq": result.seq}
        case "tiller.restore":
            front.dialogs.check_may_decide()
            return await _restore(front, hosted)
        case "tiller.trust":
            front.dialogs.check_may_decide()
            return await _trust(hosted)
        case _:
            return await _compact(front, hosted, arguments)


async def _say(
    front: Front, hosted: Any, name: str, arguments: tuple[Any, ...], *, delivery: str
) -> object:
    text = _text(arguments)
    if not text:
        message = f"{name} takes the words to say as its argument, got {list(arguments)!r}"
        raise bad(message)
    return (await say_as(front, hosted, text, delivery=delivery)).answer()


async def _restore(front: Front, hosted: Any) -> object:
    """Ask whether the files of the last run go back; the answer does not wait for the user's."""
    try:
        offered = hosted.session.checkpoints.offer()
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    await front.flush()
    return {"checkpoint": None if offered is None else offered.checkpoint}


async def _trust(hosted: Any) -> object:
    try:
        trust = await hosted.session.permissions.decide_trust(trusted=True)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    return pictures.trust(trust)


async def _compact(front: Front, hosted: Any, arguments: tuple[Any, ...]) -> object:
    try:
        receipt = await hosted.session.compact(_text(arguments) or None)
    except TillerError as error:
        raise rpc_error(error, session=hosted.session.id) from error
    await front.flush()
    return {"compaction": receipt.compaction, "seq": receipt.seq, "why": receipt.why}


def _text(arguments: tuple[Any, ...]) -> str:
    """Give the words of an argument list: strings, or one object with `text`."""
    match arguments:
        case [{"text": str(text)}, *_]:
            return text
        case _:
            return " ".join(one for one in arguments if isinstance(one, str)).strip()
