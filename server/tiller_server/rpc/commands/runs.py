"""Commands that start, steer and end what a session does."""

import asyncio
from collections.abc import Mapping
from typing import Final

import anyio

from agent_core.events import BashEnded, CompactionEnded, QueueChanged
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_text
from agent_core.messages import text_of
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.rpc.commands.context import (
    Handler,
    RpcContext,
    choice_field,
    flag_field,
    text_field,
)
from tiller_server.rpc.records import content_of

BEHAVIOURS: Final = ("steer", "followUp")
DISPOSITIONS: Final = frozenset({"started", "handled"})
"""Answers to a prompt that pi has too; any other is `queued`."""
QUEUED_S: Final = 1.0
"""Bound of the wait for the event of a message that was queued; it may be taken before."""
COMPACTED: Final = ("summary", "firstKeptEntryId", "tokensBefore", "usage", "details")


async def prompt(context: RpcContext, command: JsonObject) -> JsonObject:
    """Start a run, or add to the one that is active."""
    given = command.get("streamingBehavior") is not None
    delivery = choice_field(command, "streamingBehavior", BEHAVIOURS) if given else "reject"
    try:
        return await _send(context, command, delivery=delivery, if_idle="start")
    except AgentRefused as error:
        if error.data.get("kind") != "SessionBusy":
            raise
        message = "the agent is working: send streamingBehavior 'steer' or 'followUp' to queue the message"
        raise UsageError(message) from error


async def steer(context: RpcContext, command: JsonObject) -> JsonObject:
    """Queue a message for the next call of the model."""
    return await _send(context, command, delivery="steer", if_idle="hold")


async def follow_up(context: RpcContext, command: JsonObject) -> JsonObject:
    """Queue a message for the end of the run."""
    return await _send(context, command, delivery="followUp", if_idle="hold")


async def _send(
    context: RpcContext, command: JsonObject, *, delivery: str, if_idle: str
) -> JsonObject:
    try:
        content = content_of(text_field(command, "message"), command.get("images"))
    except ValueError as error:
        raise UsageError(str(error)) from error
    session = context.session
    answer = await session.request(
        "agent/prompt", content=content, delivery=delivery, ifIdle=if_idle
    )
    accepted = as_text(answer.get("accepted"))
    # Their events come after the response, and what is read next must not be older.
    if accepted == "started":
        session.activity.is_running = True
    elif accepted not in DISPOSITIONS:
        with anyio.move_on_after(QUEUED_S):
            await _wait_queued(context, as_text(answer.get("queueId")))
    return {"data": {"disposition": accepted if accepted in DISPOSITIONS else "queued"}}


async def _wait_queued(context: RpcContext, name: str) -> None:
    session = context.session
    while all(one.queue_id != name for one in session.state.queue):
        _ = await session.waiters.expect(QueueChanged)


async def abort(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Cancel what is active; the response comes when it has ended."""
    _ = await context.session.request("agent/run/cancel", scope="session", queue="keep")
    return {}


async def clear_queue(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Remove the waiting messages and return their texts."""
    queue = [one for one in context.session.state.queue if one.custom is None]
    if queue:
        ops: list[JsonValue] = [{"op": "remove", "queueId": one.queue_id} for one in queue]
        changed = context.session.waiters.expect(QueueChanged)
        _ = await context.session.request("agent/queue/update", ops=ops)
        _ = await changed
    steering = [text_of(one.content) for one in queue if one.delivery == "steer"]
    follow_ups = [text_of(one.content) for one in queue if one.delivery != "steer"]
    return {"data": {"steering": steering, "followUp": follow_ups}}


async def set_auto_retry(_context: RpcContext, command: JsonObject) -> JsonObject:
    """Refuse: retries are a setting, and no part of a session."""
    enabled = flag_field(command, "enabled")
    message = f"retries cannot be set for one session: run `tiller config set retry.enabled {str(enabled).lower()}`"
    raise UsageError(message)


async def abort_retry(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Cancel a retry that waits; its run ends."""
    if context.session.activity.is_retrying:
        _ = await context.session.request("agent/run/cancel", queue="keep")
    return {}


async def compact(context: RpcContext, command: JsonObject) -> JsonObject:
    """Summarise the older part of the conversation; the response comes when that is done."""
    asked: Mapping[str, JsonValue] = {}
    if command.get("customInstructions") is not None:
        asked = {"instructions": text_field(command, "customInstructions")}
    ending = context.session.waiters.expect(CompactionEnded)
    try:
        begun = await context.session.request("agent/compact", **asked)
        if begun.get("compaction") is None:
            raise UsageError(as_text(begun.get("why")) or "there is nothing to compact")
        ended = await ending
    finally:
        _ = ending.cancel()
    if ended.summary is None:
        raise UsageError(ended.error.message if ended.error else "the compaction was cancelled")
    lines = reversed(await context.session.entries())
    entry: JsonObject = next(one for one in lines if one.get("type") == "compaction")
    data: dict[str, JsonValue] = {name: entry[name] for name in COMPACTED if name in entry}
    if ended.tokens_after is not None:
        data["estimatedTokensAfter"] = ended.tokens_after
    return {"data": data}


async def bash(context: RpcContext, command: JsonObject) -> JsonObject:
    """Run a command of the user; the response comes when it has ended."""
    line, hidden = text_field(command, "command"), command.get("excludeFromContext") is True
    ending = context.session.waiters.expect(BashEnded)
    running = asyncio.ensure_future(  # noqa: TID251 - this function awaits it
        context.session.request("agent/bash", command=line, excludeFromContext=hidden)
    )
    context.bash = context.bash or running
    try:
        _ = await asyncio.wait([running])
        if not running.cancelled():
            return {"data": _ran(running.result())}
        # `abort_bash` cancelled the request; its event has the result.
        return {"data": _ended(await ending)}
    finally:
        _ = running.cancel()
        _ = ending.cancel()
        if context.bash is running:
            context.bash = None


def _ran(result: JsonObject) -> JsonObject:
    kept = {name: result.get(name) for name in ("output", "exitCode", "cancelled", "truncated")}
    kept["fullOutputPath"] = result.get("fullOutput")
    return {name: one for name, one in kept.items() if one is not None}


def _ended(event: BashEnded) -> JsonObject:
    return _ran(
        {
            "output": event.output,
            "exitCode": event.exit_code,
            "cancelled": event.cancelled,
            "truncated": event.truncated,
            "fullOutput": event.full_output,
        }
    )


async def abort_bash(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Cancel the user's command."""
    if context.bash is not None:
        _ = context.bash.cancel()
    return {}


HANDLERS: Final[Mapping[str, Handler]] = {
    "prompt": prompt,
    "steer": steer,
    "follow_up": follow_up,
    "abort": abort,
    "clear_queue": clear_queue,
    "set_auto_retry": set_auto_retry,
    "abort_retry": abort_retry,
    "compact": compact,
    "bash": bash,
    "abort_bash": abort_bash,
}
