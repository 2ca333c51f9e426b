"""One model call becomes one message: streamed as events, kept in the transcript."""

from dataclasses import field, replace
from functools import partial

import anyio
from anyio.lowlevel import checkpoint

from agent_core.events import (
    MessageDelta,
    MessageEnded,
    MessageStarted,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
    UsageReport,
)
from agent_core.hooks import (
    AnswerReplaced,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    MessageBegun,
    MessageGrown,
    MessageOver,
    RequestBuilt,
    RequestReplaced,
)
from agent_core.kernel import ItemId, ToolCallId, TurnId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.records import dataclass
from agent_core.kernel.shield import uncancelled
from agent_core.loop.growing import growing
from agent_core.loop.port import Demand, Loop
from agent_core.messages import (
    AssistantMessage,
    Draft,
    Image,
    Message,
    StopReason,
    Text,
    ToolCall,
)
from agent_core.providers import (
    Answer,
    ModelRequest,
    Part,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)

PARTS_AT_ONCE = 32
"""After so many parts others get a turn: a provider may send thousands in one piece."""
KEEP_S = 5.0
"""How long a cancelled run may take to keep what it has."""


@dataclass(slots=True, kw_only=True)
class Answered:
    """A message in the transcript, with the items under which its calls were announced."""

    message: AssistantMessage
    call_items: tuple[ItemId, ...]
    """One for each tool call, in source order."""


@dataclass(slots=True)
class _Stream:
    """What has come of an answer."""

    item: ItemId
    draft: Draft = field(default_factory=Draft)
    announced: bool = False
    thought: ItemId | None = None
    thought_text: list[str] = field(default_factory=list)
    calls: dict[int, tuple[ItemId, str, ToolCallId]] = field(default_factory=dict)
    """By index: item, name and id of the calls announced."""


async def ask(loop: Loop, demand: Demand, *, turn: TurnId) -> Answered:
    """Ask the model and keep its answer.

    When the call fails, what has come is kept as an answer of stop reason `error`, also when that is nothing; when
    it is cancelled, words that have come are kept as one of stop reason `aborted`.

    Raises:
        ProviderError: The call failed.
    """
    system, messages = await _asked(loop, demand)
    request = ModelRequest(
        system=system,
        messages=messages,
        tools=demand.tools,
        thinking=demand.thinking,
        session=loop.session,
        cache=demand.cache,
        without_thoughts=demand.without_thoughts,
    )
    stream = _Stream(ItemId(loop.new_id()))
    grown = partial(MessageGrown, run=loop.run, item=stream.item)
    try:
        async with (
            growing(loop.hooks, MessageGrown, lambda text: grown(text=text)) as growth,
            demand.model.stream(request) as parts,
        ):
            count = 0
            async for part in parts:
                if not stream.announced:
                    _ = await loop.hooks.ask(
                        MessageBegun(run=loop.run, item=stream.item, role="assistant")
                    )
                if isinstance(part, Answer):
                    await growth.finish()
                    message = await _replaced(loop, stream, part.message)
                    return await _keep(loop, demand, stream, message, turn=turn)
                _announce(loop, demand, stream, part, turn=turn)
                if isinstance(part, TextDelta):
                    growth.add(part.text)
                count += 1
                if count % PARTS_AT_ONCE == 0:
                    await checkpoint()
    except ProviderError as error:
        await _keep_partial(loop, demand, stream, turn=turn, stop="error", why=str(error))
        raise
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(KEEP_S, shield=True):
            await _keep_partial(loop, demand, stream, turn=turn, stop="aborted", why=None)
        raise
    facts = demand.model.facts
    message = f"{facts.ref} ended its stream without an answer; try again"
    raise ProviderError(message, reason="protocol", provider=facts.provider)


async def _asked(loop: Loop, demand: Demand) -> tuple[str, tuple[Message, ...]]:
    """Give the system prompt and the messages of a request, as hooks want them."""
    system, messages = demand.system, loop.recording.context()
    match await loop.hooks.ask(ContextBuilt(messages=messages)):
        case ContextReplaced(messages=others):
            messages = others
        case GoOn():
            pass
    match await loop.hooks.ask(RequestBuilt(system=system, messages=messages)):
        case RequestReplaced(system=other, messages=others):
            system = system if other is None else other
            messages = messages if others is None else others
        case GoOn():
            pass
    return system, messages


async def _replaced(loop: Loop, stream: _Stream, message: AssistantMessage) -> AssistantMessage:
    """Give a whole answer with the words that hooks want to be kept."""
    match await loop.hooks.ask(MessageOver(run=loop.run, item=stream.item, message=message)):
        case AnswerReplaced() as other:
            return replace(message, content=other.content_of(message))
        case GoOn():
            return message


def _announce(loop: Loop, demand: Demand, stream: _Stream, part: Part, *, turn: TurnId) -> None:
    """Turn a part into events."""
    if not stream.announced:
        stream.announced = True
        loop.emit(
            MessageStarted(
                run=loop.run,
                turn=turn,
                item=stream.item,
                role="assistant",
                model=demand.model.facts.ref,
            )
        )
    if not isinstance(part, ThinkingDelta):
        _end_thought(loop, stream, turn=turn)
    match part:
        case TextDelta(text=text):
            stream.draft.text(text)
            loop.emit(MessageDelta(run=loop.run, turn=turn, item=stream.item, text=text))
        case ThinkingDelta(text=text):
            _think(loop, stream, text, turn=turn)
        case ToolCallStart(index=index, name=name, id=call):
            item = ItemId(loop.new_id())
            stream.calls[index] = (item, name, ToolCallId(call))
            loop.emit(
                ToolStarted(
                    run=loop.run, turn=turn, item=item, call=ToolCallId(call), name=name, title=name
                )
            )
        case ToolCallDelta(index=index, text=text):
            if index in stream.calls:
                item, _, _ = stream.calls[index]
                loop.emit(ToolInputDelta(run=loop.run, turn=turn, item=item, text=text))
        case Answer():
            pass


def _think(loop: Loop, stream: _Stream, text: str, *, turn: TurnId) -> None:
    stream.draft.thinking(text)
    if stream.thought is None:
        stream.thought = ItemId(loop.new_id())
        loop.emit(ThoughtStarted(run=loop.run, turn=turn, item=stream.thought))
    stream.thought_text.append(text)
    loop.emit(ThoughtDelta(run=loop.run, turn=turn, item=stream.thought, text=text))


def _end_thought(loop: Loop, stream: _Stream, *, turn: TurnId) -> None:
    if stream.thought is None:
        return
    whole = "".join(stream.thought_text)
    loop.emit(ThoughtEnded(run=loop.run, turn=turn, item=stream.thought, text=whole))
    stream.thought = None
    stream.thought_text.clear()


async def _keep(
    loop: Loop, demand: Demand, stream: _Stream, message: AssistantMessage, *, turn: TurnId
) -> Answered:
    """Keep a whole answer and say so; cancellation waits until both are done."""
    entry = await uncancelled(loop.recording.answered(message))
    if not stream.announced:
        _announce(loop, demand, stream, TextDelta(text=message.text), turn=turn)
    _end_thought(loop, stream, turn=turn)
    facts = demand.model.facts
    loop.emit(
        MessageEnded(
            run=loop.run,
            turn=turn,
            item=stream.item,
            role="assistant",
            content=tuple(part for part in message.content if isinstance(part, Text | Image)),
            model=facts.ref,
            usage=UsageReport(
                tokens=message.usage,
                context_used=message.usage.total or None,
                context_size=facts.context_window,
            ),
            stop_reason=message.stop_reason,
            entry=entry,
        )
    )
    return Answered(message=message, call_items=_call_items(loop, stream, message, turn=turn))


def _call_items(
    loop: Loop, stream: _Stream, message: AssistantMessage, *, turn: TurnId
) -> tuple[ItemId, ...]:
    """Match calls with the items that announced them, announcing those that were not streamed."""
    announced = [announced for _, (announced, _, _) in sorted(stream.calls.items())]
    items: list[ItemId] = []
    for index, call in enumerate(message.tool_calls):
        if index < len(announced):
            items.append(announced[index])
            continue
        item = ItemId(loop.new_id())
        loop.emit(_tool_started(loop, item, call, turn=turn))
        items.append(item)
    return tuple(items)


def _tool_started(loop: Loop, item: ItemId, call: ToolCall, *, turn: TurnId) -> ToolStarted:
    title = loop.tools.title(call)
    return ToolStarted(
        run=loop.run, turn=turn, item=item, call=call.id, name=call.name, title=title
    )


async def _keep_partial(
    loop: Loop, demand: Demand, stream: _Stream, *, turn: TurnId, stop: StopReason, why: str | None
) -> None:
    """Keep what came, and end everything that was announced."""
    facts = demand.model.facts
    message = AssistantMessage(
        content=stream.draft.content() if stream.draft.says_something() else (),
        api=facts.api,
        provider=facts.provider,
        model=facts.id,
        stop_reason=stop,
        error=why,
        at_ms=loop.clock.now_ms(),
    )
    if message.content:
        _ = await _keep(loop, demand, stream, message, turn=turn)
        _end_calls(loop, stream, turn=turn)
        return
    # A failure is a fact of the session even without words; a cancel before the first word is none.
    entry = await uncancelled(loop.recording.answered(message)) if stop == "error" else None
    _end_thought(loop, stream, turn=turn)
    if stream.announced:
        loop.emit(
            MessageEnded(
                run=loop.run,
                turn=turn,
                item=stream.item,
                role="assistant",
                content=(),
                model=facts.ref,
                stop_reason=stop,
                entry=entry,
            )
        )
    _end_calls(loop, stream, turn=turn)


def _end_calls(loop: Loop, stream: _Stream, *, turn: TurnId) -> None:
    """End the calls of an answer that never became whole: they are in no transcript and never run."""
    for item, name, call in stream.calls.values():
        loop.emit(
            ToolEnded(
                run=loop.run,
                turn=turn,
                item=item,
                call=call,
                name=name,
                status="cancelled",
                content=(),
                details=None,
                duration_ms=None,
            )
        )
