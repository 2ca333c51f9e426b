"""One batch of tool calls: every call gets exactly one result, in source order, on every path."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec import Struct

from agent_core.events import ToolEnded, ToolOutputDelta, ToolRunning, ToolStatus
from agent_core.hooks import ToolOver, ToolPrinted
from agent_core.kernel import ItemId, JsonObject, JsonValue, TurnId
from agent_core.loop.answer import KEEP_S, HookStream, NullHookStream, StoredAnswer, hook_stream
from agent_core.loop.port import LoopContext, RequestConfig
from agent_core.messages import Text, ToolCall, ToolResultMessage, UserContent
from agent_core.messages.values import Unfinished
from agent_core.tools.runner import CallLimiter, ToolOutcome

SKIPPED = "Skipped due to queued user message"
CUT_OFF = (
    "This call was not run: the answer was cut off by the output token limit, so its arguments may be incomplete. "
    "Send the call again, whole; split large content into several calls."
)
LAST_TURN = "Not run: the run is at its limit of answers (maxTurns), and ends with this one."
CANCELLED = "Operation aborted"
COMMAND_CANCELLED = "Command aborted"
"""The same for a call that ran processes."""
STOPPED_BY_USER = "Interrupted by the user: this call alone was stopped."
STOPPED_BY_STEERING = "Interrupted: the user sent a new message while this ran."
TAIL_CHARS = 8_192
"""How much live output an interrupted call gives to the model."""


class _Slot(Struct, kw_only=True):
    """A call and what became of it."""

    call: ToolCall
    item: ItemId
    outcome: ToolOutcome | None = None
    result: ToolResultMessage | None = None
    """Set when it is kept."""
    tail: str = ""
    stop_text: str = CANCELLED
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)


async def run_batch(
    loop: LoopContext, demand: RequestConfig, answered: StoredAnswer, *, turn: TurnId
) -> tuple[ToolResultMessage, ...]:
    """Run the calls of an answer, keep their results and give them.

    Cancelled, it still keeps a result for every call: the true one where the call was over.
    """
    slots = [
        _Slot(call=call, item=item)
        for call, item in zip(answered.message.tool_calls, answered.call_items, strict=True)
    ]
    loop.repetition.begin(answered.message.tool_calls)
    try:
        if demand.is_last:
            await _refuse_all(loop, slots, LAST_TURN, turn=turn)
        elif answered.message.stop_reason == "length":
            await _refuse_all(loop, slots, CUT_OFF, turn=turn)
        elif demand.parallel and len(slots) > 1 and _all_safe(loop, slots):
            await _side_by_side(loop, demand, slots, turn=turn)
        else:
            await _one_by_one(loop, demand, slots, turn=turn)
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(KEEP_S, shield=True):
            for slot in slots:
                _ = await _keep(loop, slot, turn=turn)
        raise
    return tuple(slot.result for slot in slots if slot.result is not None)


def _all_safe(loop: LoopContext, slots: Sequence[_Slot]) -> bool:
    return all(loop.tools.parallel_safe(slot.call.name) for slot in slots)


async def _refuse_all(loop: LoopContext, slots: Sequence[_Slot], why: str, *, turn: TurnId) -> None:
    for slot in slots:
        slot.outcome = ToolOutcome.without_run("error", why)
        await _end(loop, slot, turn=turn)


async def _side_by_side(
    loop: LoopContext, demand: RequestConfig, slots: Sequence[_Slot], *, turn: TurnId
) -> None:
    if demand.skip_on_steer and loop.inbox.has_steering():
        await _skip(loop, slots, turn=turn)
        return
    places = anyio.Semaphore(demand.concurrency)

    @asynccontextmanager
    async def limiter() -> AsyncGenerator[ToolOutcome | None]:
        async with places:
            is_skipped = demand.skip_on_steer and loop.inbox.has_steering()
            yield ToolOutcome.without_run("skipped", SKIPPED) if is_skipped else None

    async with anyio.create_task_group() as group:
        for slot in slots:
            group.start_soon(_run, loop, demand, slot, turn, limiter())
    for slot in slots:
        await _end(loop, slot, turn=turn)


async def _one_by_one(
    loop: LoopContext, demand: RequestConfig, slots: Sequence[_Slot], *, turn: TurnId
) -> None:
    for index, slot in enumerate(slots):
        if demand.skip_on_steer and loop.inbox.has_steering():
            await _skip(loop, slots[index:], turn=turn)
            return
        await _run(loop, demand, slot, turn)
        await _end(loop, slot, turn=turn)


async def _skip(loop: LoopContext, slots: Sequence[_Slot], *, turn: TurnId) -> None:
    for slot in slots:
        slot.outcome = ToolOutcome.without_run("skipped", SKIPPED)
        await _end(loop, slot, turn=turn)


async def _run(
    loop: LoopContext,
    demand: RequestConfig,
    slot: _Slot,
    turn: TurnId,
    limiter: CallLimiter | None = None,
) -> None:
    """Run one call in a scope of its own, so that it can be stopped alone."""

    def stop() -> None:
        slot.stop_text = STOPPED_BY_USER
        slot.scope.cancel()

    if (refusal := loop.repetition.refusal(slot.call)) is not None:
        slot.outcome = ToolOutcome.without_run("error", refusal)
        return
    # A call may end as if nothing had happened although it was cancelled; the next one must not start then.
    await checkpoint()
    runs_processes = loop.tools.runs_processes(slot.call.name)
    if runs_processes:
        slot.stop_text = COMMAND_CANCELLED
    loop.items.started(slot.item, stop)
    begun_s = loop.clock.monotonic_s()
    begun = anyio.Event()
    try:
        if demand.steer_grace_s is None or not runs_processes:
            await _run_tool(loop, slot, turn, begun, limiter)
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(_stop_on_steering, loop, slot, begun, demand.steer_grace_s)
                await _run_tool(loop, slot, turn, begun, limiter)
                group.cancel_scope.cancel()
    finally:
        loop.items.ended(slot.item)
    if slot.outcome is not None:
        loop.repetition.ran(
            slot.call, slot.outcome.result.content, duration_ms=slot.outcome.duration_ms
        )
    if slot.outcome is None:
        took_ms = round((loop.clock.monotonic_s() - begun_s) * 1000)
        slot.outcome = _stopped(slot, took_ms)


async def _run_tool(
    loop: LoopContext, slot: _Slot, turn: TurnId, begun: anyio.Event, limiter: CallLimiter | None
) -> None:
    """Run the tool of a call until it ends or its scope is cancelled, and publish what it does meanwhile."""
    growth: HookStream[str] | NullHookStream = NullHookStream()
    input_ = slot.call.arguments

    def printed(texts: Sequence[str]) -> ToolPrinted:
        return ToolPrinted(
            call=slot.call.id, tool=slot.call.name, arguments=input_, text="".join(texts)
        )

    def running(arguments: JsonObject, details: JsonObject | None) -> None:
        nonlocal input_
        input_ = arguments
        begun.set()
        title = loop.tools.title(slot.call)
        loop.publish(
            ToolRunning(
                run=loop.run,
                turn=turn,
                item=slot.item,
                title=title,
                input=arguments,
                details=details,
            )
        )

    def output(text: str) -> None:
        slot.tail = (slot.tail + text)[-TAIL_CHARS:]
        growth.add(text)
        loop.publish(ToolOutputDelta(run=loop.run, turn=turn, item=slot.item, text=text))

    with slot.scope:
        async with hook_stream(loop.hooks, ToolPrinted, printed) as growth:
            slot.outcome = await loop.tools.run(
                slot.call, running=running, output=output, limiter=limiter
            )


async def _stop_on_steering(
    loop: LoopContext, slot: _Slot, begun: anyio.Event, grace_s: float
) -> None:
    """Cancel a running tool call `grace_s` seconds after a steering message; until then it may end by itself."""
    # Words said while a permission is asked neither answer nor withdraw the question.
    await begun.wait()
    await loop.inbox.wait_for_steering()
    await loop.clock.sleep(grace_s)
    slot.stop_text = STOPPED_BY_STEERING
    slot.scope.cancel()


def _stopped(slot: _Slot, duration_ms: int | None) -> ToolOutcome:
    tail = slot.tail.rstrip("\n")
    text = f"{tail}\n\n{slot.stop_text}" if tail else slot.stop_text
    return ToolOutcome.without_run("cancelled", text, duration_ms=duration_ms)


async def _end(loop: LoopContext, slot: _Slot, *, turn: TurnId) -> None:
    """Keep a call's result, and tell hooks of it."""
    result, status = await _keep(loop, slot, turn=turn)
    _ = await loop.hooks.ask(
        ToolOver(
            call=slot.call.id,
            tool=slot.call.name,
            status=status,
            content=result.content,
            details=result.details,
            is_error=result.is_error,
        )
    )


def _unfinished(status: ToolStatus) -> Unfinished | None:
    match status:
        case "ok" | "error":
            return None
        case "skipped" | "blocked" | "cancelled":
            return status


async def _keep(
    loop: LoopContext, slot: _Slot, *, turn: TurnId
) -> tuple[ToolResultMessage, ToolStatus]:
    """Keep a call's result and say so, once."""
    outcome = slot.outcome or _stopped(slot, None)
    if slot.result is not None:
        return slot.result, outcome.status
    content, details, status = _shape(outcome)
    with anyio.CancelScope(shield=True):
        content = await loop.recording.store_images(content)
    slot.result = ToolResultMessage(
        call_id=slot.call.id,
        tool_name=slot.call.name,
        content=content,
        details=details,
        is_error=outcome.result.is_error,
        duration_ms=outcome.duration_ms,
        unfinished=_unfinished(status),
        at_ms=loop.clock.now_ms(),
    )
    with anyio.CancelScope(shield=True):
        _ = await loop.recording.add_tool_result(slot.result)
        loop.publish(
            ToolEnded(
                run=loop.run,
                turn=turn,
                item=slot.item,
                call=slot.call.id,
                name=slot.call.name,
                status=status,
                content=content,
                details=details,
                duration_ms=outcome.duration_ms,
            )
        )
    return slot.result, status


def _shape(outcome: ToolOutcome) -> tuple[tuple[UserContent, ...], JsonValue, ToolStatus]:
    content = outcome.result.content or (Text(text="(no output)"),)
    return content, outcome.result.details, outcome.status
