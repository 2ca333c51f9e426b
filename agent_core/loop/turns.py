"""Turns until nothing is left: the two loops of a run.

The inner loop asks the model while tool calls or the user's steering ask for another turn; the outer one goes on
with follow-ups when the inner one has nothing left to do.
"""

from collections.abc import Callable

import anyio

from agent_core.events import MessageEnded, MessageStarted, TurnEnded, TurnStarted, UsageReport
from agent_core.hooks import MessageBegun, MessageOver, TurnBegun, TurnOver
from agent_core.kernel import EntryId, ItemId, TurnId
from agent_core.kernel.errors import BudgetExceeded, ProviderError
from agent_core.kernel.values import Value
from agent_core.loop.answer import AnswerStream, StoredAnswer, ask
from agent_core.loop.batch import run_batch
from agent_core.loop.port import LoopContext, RequestConfig, UserInput
from agent_core.messages import (
    AssistantMessage,
    CustomMessage,
    StopReason,
    ToolResultMessage,
    Usage,
    UserMessage,
)


class _Turn(Value, frozen=True, kw_only=True):
    """A turn that has begun."""

    id: TurnId
    index: int
    begun_s: float


async def run_turns(
    loop: LoopContext, *, first: Callable[[], tuple[UserInput, ...]] | None = None
) -> AssistantMessage:
    """Run turns from where the transcript stands to the last answer.

    Args:
        loop: Everything the run needs.
        first: Takes the words of the first turn out of the queue; None: those that steer.

    Returns:
        The answer after which nothing was left to do.

    Raises:
        ProviderError: A model call failed; everything before it is in the transcript, and `run_turns` may
            be called again to go on from there.
        BudgetExceeded: A budget does not allow the next model call.
        CallsRepeated: The model does nothing but repeat calls whose results it has.
    """
    take = first or loop.inbox.take_steering
    while True:
        if loop.turns.count:
            if not loop.inbox.has_steering():
                loop.repetition.check()
            await loop.before_turn.before_turn()
        answered = await _turn(loop, take)
        take = loop.inbox.take_steering
        if answered.message.tool_calls or loop.inbox.has_steering():
            continue
        if not loop.inbox.has_follow_ups():
            return answered.message
        take = loop.inbox.take_follow_ups


async def _turn(loop: LoopContext, take: Callable[[], tuple[UserInput, ...]]) -> StoredAnswer:
    """Return what waits, ask the model, run its calls."""
    turn, index = TurnId(loop.new_id()), loop.turns.next()
    begun = _Turn(id=turn, index=index, begun_s=loop.clock.monotonic_s())
    loop.publish(TurnStarted(run=loop.run, turn=turn, index=index))
    said: list[tuple[UserInput, EntryId]] = []
    if taken := take():
        # What is taken from the queue must land in the transcript, whatever is cancelled meanwhile.
        with anyio.CancelScope(shield=True):
            for user_input in taken:
                entry = await loop.recording.add_user(user_input)
                publish_input(loop, user_input, entry, turn=turn)
                said.append((user_input, entry))
        loop.repetition.reset()
    demand = loop.demand()
    stream = AnswerStream(loop.recording.next_answer())
    results: tuple[ToolResultMessage, ...] = ()
    try:
        now_ms = loop.clock.now_ms()
        _ = await loop.hooks.ask(TurnBegun(run=loop.run, turn=turn, index=index, at_ms=now_ms))
        for user_input, entry in said:
            await loop.intake.on_input(user_input, entry)
            await notify_input_hooks(loop, user_input)
        answered = await ask(loop, demand, stream, turn=turn)
        if answered.message.tool_calls:
            results = await run_batch(loop, demand, answered, turn=turn)
    except (ProviderError, BudgetExceeded):
        _ = _end(loop, demand, begun, stop="error", tokens=stream.usage)
        raise
    except anyio.get_cancelled_exc_class():
        _ = _end(loop, demand, begun, stop="aborted", tokens=stream.usage)
        raise
    message = answered.message
    took_ms = _end(loop, demand, begun, stop=message.stop_reason, tokens=message.usage)
    _ = await loop.hooks.ask(
        TurnOver(
            run=loop.run,
            turn=turn,
            index=index,
            message=message,
            results=results,
            duration_ms=took_ms,
        )
    )
    return answered


def publish_input(
    loop: LoopContext, user_input: UserInput, entry: EntryId, *, turn: TurnId | None
) -> None:
    """Report that words are in the conversation now, unless a program said them and people are not to see them."""
    custom = user_input.custom
    if custom is not None and not custom.display:
        return
    item = ItemId(loop.new_id())
    role = "user" if custom is None else "custom"
    loop.publish(MessageStarted(run=loop.run, turn=turn, item=item, role=role))
    loop.publish(
        MessageEnded(
            run=loop.run,
            turn=turn,
            item=item,
            role=role,
            content=user_input.content,
            custom_type=None if custom is None else custom.custom_type,
            delivery=user_input.delivery,
            message_id=user_input.message_id,
            entry=entry,
        )
    )


async def notify_input_hooks(loop: LoopContext, user_input: UserInput) -> None:
    """Notify hooks of a message that was added to the conversation."""
    if not (loop.hooks.listens(MessageBegun) or loop.hooks.listens(MessageOver)):
        return
    item, custom, now_ms = ItemId(loop.new_id()), user_input.custom, loop.clock.now_ms()
    message = UserMessage(content=user_input.content, at_ms=now_ms)
    if custom is not None:
        message = CustomMessage(
            custom_type=custom.custom_type,
            content=user_input.content,
            display=custom.display,
            details=custom.details,
            at_ms=now_ms,
        )
    role = "user" if custom is None else "custom"
    _ = await loop.hooks.ask(MessageBegun(run=loop.run, item=item, role=role, message=message))
    _ = await loop.hooks.ask(MessageOver(run=loop.run, item=item, message=message))


def _end(
    loop: LoopContext, demand: RequestConfig, turn: _Turn, *, stop: StopReason, tokens: Usage
) -> int:
    """Report the end of a turn; returns how long it took, in milliseconds."""
    took_ms = round((loop.clock.monotonic_s() - turn.begun_s) * 1000)
    size = demand.model.facts.context_window
    loop.publish(
        TurnEnded(
            run=loop.run,
            turn=turn.id,
            index=turn.index,
            stop_reason=stop,
            usage=UsageReport(tokens=tokens, context_used=tokens.total or None, context_size=size),
            duration_ms=took_ms,
        )
    )
    return took_ms
