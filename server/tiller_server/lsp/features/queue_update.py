"""`agent/queue/update`: change words that wait, all changes or none."""

from typing import Any

from agent_core.events.codec import queue_item
from agent_core.kernel import QueueId
from agent_core.kernel.errors import TillerError
from agent_core.session.input.queue_edit import Move, QueueOp, Remove, Replace, SendNow, Steer
from tiller_server.lsp.encode.content import to_content
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front, bad
from tiller_server.lsp.sessions.prompt_submission import check_size
from tiller_server.lsp.wire import QueueOp as AskedOp, QueueUpdateParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Change the queue; gives it as it is then, with the number of the event that tells it."""
    asked = parse(QueueUpdateParams, params, method="agent/queue/update")
    ops = [_op(one) for one in asked.ops]
    hosted = await front.hosted(asked.session)
    queue = hosted.session.queue
    try:
        with hosted.environment.speaks(front.origin.env):
            items = await queue.edit(ops, if_seq=asked.if_seq)
    except TillerError as error:
        raise rpc_error(
            error, session=hosted.session.id, expected=asked.if_seq, actual=queue.changed_seq
        ) from error
    return {"queue": [queue_item(item) for item in items], "seq": queue.changed_seq}


def _op(asked: AskedOp) -> QueueOp:
    queue_id = QueueId(asked.queue_id)
    match asked.op:
        case "remove":
            return Remove(queue_id=queue_id)
        case "replace":
            words = tuple(to_content(asked.content or ()))
            check_size(words)
            return Replace(queue_id=queue_id, content=words)
        case "move":
            return Move(queue_id=queue_id, index=asked.index or 0)
        case "sendNow":
            return SendNow(queue_id=queue_id)
        case "steer":
            return Steer(queue_id=queue_id)
        case other:
            message = f"agent/queue/update: op {other!r} is not known; use remove, replace, move, sendNow or steer"
            raise bad(message)
