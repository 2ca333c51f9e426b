"""`agent/queue/update`: change words that wait, all changes or none."""

from agent_core.events.codec import queue_item
from agent_core.kernel import JsonObject, QueueId
from agent_core.kernel.errors import RunMismatch
from agent_core.session.input.queue import Move, QueueOp, Remove, Replace, SendNow, Steer
from tiller_server.lsp.encode.content import to_content
from tiller_server.lsp.encode.errors import to_rpc_error, translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.sessions.prompt_submission import check_size
from tiller_server.lsp.wire.runs import QUEUE_UPDATE, QueueOp as AskedOp, QueueUpdateParams


@feature(QUEUE_UPDATE)
async def queue_update(client: ConnectedClient, params: QueueUpdateParams) -> JsonObject:
    """Change the queue; return it as it is then, with the number of the event that reports it."""
    ops = [_op(one) for one in params.ops]
    open_session = await client.resolve_session(params.session)
    session, queue = open_session.session, open_session.session.queue
    with translated_errors(session=session.id):
        try:
            with open_session.environment.use_for_submission(client.origin.env):
                items = await queue.edit(ops, if_seq=params.if_seq)
        except RunMismatch as error:
            raise to_rpc_error(
                error, session=session.id, expected=params.if_seq, actual=queue.changed_seq
            ) from error
    return {"queue": [queue_item(item) for item in items], "seq": queue.changed_seq}


def _op(asked: AskedOp) -> QueueOp:
    queue_id = QueueId(asked.queue_id)
    match asked.op:
        case "remove":
            return Remove(queue_id=queue_id)
        case "replace":
            content = tuple(to_content(asked.content or ()))
            check_size(content)
            return Replace(queue_id=queue_id, content=content)
        case "move":
            return Move(queue_id=queue_id, index=asked.index or 0)
        case "sendNow":
            return SendNow(queue_id=queue_id)
        case "steer":
            return Steer(queue_id=queue_id)
        case other:
            message = f"agent/queue/update: op {other!r} is not known; use remove, replace, move, sendNow or steer"
            raise invalid_params(message)
