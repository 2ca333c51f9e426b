"""One model call becomes one message: streamed as events and to hooks, kept in the transcript."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, Generic, Self, TypeVar, get_args

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec import Struct
from msgspec.structs import replace

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
    AnswerGrowth,
    AnswerReplaced,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    HookInput,
    Hooks,
    MessageBegun,
    MessageGrown,
    MessageOver,
    RequestBuilt,
    RequestReplaced,
    TextGrowth,
    ThinkingGrowth,
    ToolCallGrowth,
)
from agent_core.kernel import EntryId, ItemId, RunId, ToolCallId, TurnId, call_item
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.threads import uncancelled
from agent_core.loop.port import LoopContext, RequestConfig
from agent_core.messages import (
    AssistantMessage,
    Image,
    Message,
    PartialAnswer,
    StopReason,
    Text,
    ToolCall,
    Usage,
)
from agent_core.providers import (
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageUpdate,
)

INTERVAL_S = 0.1
"""At least this long between two times."""
STOP_REASONS: Final[tuple[str, ...]] = get_args(StopReason)


PieceT = TypeVar("PieceT")


class NullHookStream:
    """Something that grows while nobody listens."""

    def add(self, piece: object, /) -> None:
        """More of it came."""
        del piece

    async def finish(self) -> None:
        """Wait for nothing."""

    async def __aenter__(self) -> Self:
        """Return the sink itself: there is nothing to open."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""


class HookStream(Generic[PieceT]):
    """Something that grows while hooks listen."""

    def __init__(
        self, hooks: Hooks, value_of: Callable[[Sequence[PieceT]], HookInput[GoOn]]
    ) -> None:
        self._hooks = hooks
        self._value_of = value_of
        self._waiting: list[PieceT] = []
        self._news = anyio.Event()
        self._over = anyio.Event()
        self._delivered = anyio.Event()

    def add(self, piece: PieceT, /) -> None:
        """More of it came."""
        self._waiting.append(piece)
        self._news.set()

    async def finish(self) -> None:
        """Wait until hooks were told all of it."""
        self._over.set()
        self._news.set()
        await self._delivered.wait()

    async def deliver(self) -> None:
        """Notify hooks of added pieces, at intervals, until `finish` is called."""
        while self._waiting or not self._over.is_set():
            await self._news.wait()
            self._news = anyio.Event()
            if self._waiting:
                value = self._value_of(self._waiting)
                self._waiting = []
                _ = await self._hooks.ask(value)
                with anyio.move_on_after(INTERVAL_S):
                    await self._over.wait()
        self._delivered.set()


def hook_stream(
    hooks: Hooks,
    point: type[HookInput[GoOn]],
    value_of: Callable[[Sequence[PieceT]], HookInput[GoOn]],
) -> AbstractAsyncContextManager[HookStream[PieceT] | NullHookStream]:
    """Open something that grows; the hooks have received all of it when the context is left without an error.

    Args:
        hooks: The hooks to notify.
        point: The hook point; without a listener there, nothing is done.
        value_of: Makes the hook input from the pieces added since the last notification.
    """
    return _delivered(hooks, value_of) if hooks.listens(point) else NullHookStream()


@asynccontextmanager
async def _delivered(
    hooks: Hooks, value_of: Callable[[Sequence[PieceT]], HookInput[GoOn]]
) -> AsyncGenerator[HookStream[PieceT]]:
    heard = HookStream(hooks, value_of)
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(heard.deliver)
        try:
            yield heard
            await heard.finish()
        except Exception as error:  # noqa: BLE001 - kept from the task group, which would wrap it; raised below
            failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


PARTS_AT_ONCE = 32
"""After so many parts others get a turn: a provider may send thousands in one piece."""
KEEP_S = 5.0
"""How long a cancelled run may take to keep what it has."""


class StoredAnswer(Struct, kw_only=True):
    """A message in the transcript, with the items under which its calls were announced."""

    message: AssistantMessage
    call_items: tuple[ItemId, ...]
    """One for each tool call, in source order."""


class StreamedThought(Struct):
    """One thought of an answer, told as it comes and ended when it is in the transcript."""

    item: ItemId
    pieces: list[str] = msgspec.field(default_factory=list)


class AnswerStream(Struct):
    """The received part of an answer, with its open thoughts and its tool calls."""

    entry: EntryId
    """Id of the entry that it gets, and of its item."""
    draft: PartialAnswer = msgspec.field(default_factory=PartialAnswer)
    announced: bool = False
    usage: Usage = msgspec.field(default_factory=Usage)
    """Usage so far, also when the answer fails or is cancelled."""
    thinking: bool = False
    """The newest of the thoughts still grows."""
    thoughts: list[StreamedThought] = msgspec.field(default_factory=list)
    """Those that were announced and not ended."""
    calls: dict[int, tuple[ItemId, str, ToolCallId]] = msgspec.field(default_factory=dict)
    """By index: item, name and id of the calls announced."""

    @property
    def item(self) -> ItemId:
        """Its item."""
        return ItemId(self.entry)


async def ask(
    loop: LoopContext, demand: RequestConfig, stream: AnswerStream, *, turn: TurnId
) -> StoredAnswer:
    """Ask the model and keep its answer.

    When the call fails, what has come is kept as an answer of stop reason `error`, also when that is nothing; when
    it is cancelled, what has come is kept as one of stop reason `aborted`, unless nothing came and nothing was used. `stream` is of a new item, and
    holds what came, however the call ends.

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
        run=loop.run,
        turn=turn,
    )
    try:
        async with (
            hook_stream(loop.hooks, MessageGrown, partial(_grown, loop.run, stream)) as growth,
            demand.model.stream(request) as parts,
        ):
            count = 0
            async for part in parts:
                if isinstance(part, UsageUpdate):
                    stream.usage = part.usage
                    continue
                if not stream.announced:
                    _ = await loop.hooks.ask(
                        MessageBegun(run=loop.run, item=stream.item, role="assistant")
                    )
                if isinstance(part, StreamFinished):
                    _check_stop_reason(part.message, demand.model.facts)
                    await growth.finish()
                    stream.usage = part.message.usage
                    message = await _replaced(loop, stream, part.message)
                    return await _keep(loop, demand, stream, message, turn=turn)
                _announce(loop, demand, stream, part, turn=turn)
                growth.add(part)
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
    info = demand.model.facts
    message = f"{info.ref} ended its stream without an answer; try again"
    raise ProviderError(message, reason="protocol", provider=info.provider)


def _check_stop_reason(message: AssistantMessage, info: ModelInfo) -> None:
    """Check what a model of an extension may have wrong, and no file or trace could hold.

    Raises:
        ProviderError: It is no stop reason.
    """
    if message.stop_reason not in STOP_REASONS:
        reasons = ", ".join(STOP_REASONS)
        text = f"{info.ref} ended with stop_reason {message.stop_reason!r}, which is none of {reasons}; correct the extension that brings it"
        raise ProviderError(text, reason="protocol", provider=info.provider)


async def _asked(loop: LoopContext, demand: RequestConfig) -> tuple[str, tuple[Message, ...]]:
    """Return the system prompt and the messages of a request, as hooks want them."""
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


async def _replaced(
    loop: LoopContext, stream: AnswerStream, message: AssistantMessage
) -> AssistantMessage:
    """Return a whole answer with the words that hooks want to be kept."""
    match await loop.hooks.ask(MessageOver(run=loop.run, item=stream.item, message=message)):
        case AnswerReplaced() as other:
            return replace(message, content=other.content_of(message))
        case GoOn():
            return message


def _grown(run: RunId, stream: AnswerStream, parts: Sequence[StreamEvent]) -> MessageGrown:
    """Return what hooks are told of new parts of an answer."""
    growth: list[AnswerGrowth] = []
    for part in parts:
        more = _growth(stream, part)
        if more is None:
            continue
        before = growth[-1] if growth else None
        if before is not None and replace(before, text=more.text) == more:
            growth[-1] = replace(before, text=before.text + more.text)
        else:
            growth.append(more)
    return MessageGrown(
        run=run,
        item=stream.item,
        text="".join(more.text for more in growth if isinstance(more, TextGrowth)),
        growth=tuple(growth),
        content=stream.draft.content(),
    )


def _growth(stream: AnswerStream, part: StreamEvent) -> AnswerGrowth | None:
    match part:
        case TextDelta(text=text):
            return TextGrowth(text=text)
        case ThinkingDelta(text=text):
            return ThinkingGrowth(text=text)
        case ToolCallStart(index=index) | ToolCallDelta(index=index):
            if index not in stream.calls:
                return None
            _, name, call = stream.calls[index]
            text = part.text if isinstance(part, ToolCallDelta) else ""
            place = list(stream.calls).index(index)
            return ToolCallGrowth(index=place, call=call, tool=name, text=text)
        case StreamFinished() | UsageUpdate():
            return None


def _announce(
    loop: LoopContext,
    demand: RequestConfig,
    stream: AnswerStream,
    part: StreamEvent,
    *,
    turn: TurnId,
) -> None:
    """Turn a part into events."""
    if not stream.announced:
        stream.announced = True
        loop.publish(
            MessageStarted(
                run=loop.run,
                turn=turn,
                item=stream.item,
                role="assistant",
                model=demand.model.facts.ref,
            )
        )
    stream.thinking = stream.thinking and isinstance(part, ThinkingDelta)
    match part:
        case TextDelta(text=text):
            stream.draft.text(text)
            loop.publish(MessageDelta(run=loop.run, turn=turn, item=stream.item, text=text))
        case ThinkingDelta(text=text):
            _think(loop, stream, text, turn=turn)
        case ToolCallStart(index=index, name=name, id=call):
            item = call_item(stream.entry, len(stream.calls))
            stream.calls[index] = (item, name, ToolCallId(call))
            loop.publish(
                ToolStarted(
                    run=loop.run, turn=turn, item=item, call=ToolCallId(call), name=name, title=name
                )
            )
        case ToolCallDelta(index=index, text=text):
            if index in stream.calls:
                item, _, _ = stream.calls[index]
                loop.publish(ToolInputDelta(run=loop.run, turn=turn, item=item, text=text))
        case StreamFinished() | UsageUpdate():
            pass


def _think(loop: LoopContext, stream: AnswerStream, text: str, *, turn: TurnId) -> None:
    stream.draft.thinking(text)
    if not stream.thinking:
        stream.thinking = True
        stream.thoughts.append(StreamedThought(ItemId(loop.new_id())))
        loop.publish(ThoughtStarted(run=loop.run, turn=turn, item=stream.thoughts[-1].item))
    thought = stream.thoughts[-1]
    thought.pieces.append(text)
    loop.publish(ThoughtDelta(run=loop.run, turn=turn, item=thought.item, text=text))


def _end_thoughts(loop: LoopContext, stream: AnswerStream, *, turn: TurnId) -> None:
    """End the thoughts of an answer that is in the transcript, so that a thought reported as whole survives a crash."""
    for thought in stream.thoughts:
        whole = "".join(thought.pieces)
        loop.publish(ThoughtEnded(run=loop.run, turn=turn, item=thought.item, text=whole))
    stream.thoughts.clear()


async def _keep(
    loop: LoopContext,
    demand: RequestConfig,
    stream: AnswerStream,
    message: AssistantMessage,
    *,
    turn: TurnId,
) -> StoredAnswer:
    """Keep a whole answer and say so; cancellation waits until both are done."""
    entry = await uncancelled(loop.recording.add_assistant(message, stream.entry))
    if not stream.announced:
        _announce(loop, demand, stream, TextDelta(text=message.text), turn=turn)
    _end_thoughts(loop, stream, turn=turn)
    loop.publish(_message_ended(demand, stream, message, run=loop.run, turn=turn, entry=entry))
    return StoredAnswer(message=message, call_items=_call_items(loop, stream, message, turn=turn))


def _message_ended(
    demand: RequestConfig,
    stream: AnswerStream,
    message: AssistantMessage,
    *,
    run: RunId,
    turn: TurnId,
    entry: EntryId | None,
) -> MessageEnded:
    info = demand.model.facts
    usage = UsageReport(
        tokens=message.usage,
        context_used=message.usage.total or None,
        context_size=info.context_window,
    )
    return MessageEnded(
        run=run,
        turn=turn,
        item=stream.item,
        role="assistant",
        content=tuple(part for part in message.content if isinstance(part, Text | Image)),
        model=info.ref,
        usage=usage if message.content or message.usage.total else None,
        stop_reason=message.stop_reason,
        entry=entry,
    )


def _call_items(
    loop: LoopContext, stream: AnswerStream, message: AssistantMessage, *, turn: TurnId
) -> tuple[ItemId, ...]:
    """Match calls with the items that announced them, announcing those that were not streamed."""
    announced = [announced for _, (announced, _, _) in sorted(stream.calls.items())]
    items: list[ItemId] = []
    for index, call in enumerate(message.tool_calls):
        if index < len(announced):
            items.append(announced[index])
            continue
        item = call_item(stream.entry, index)
        loop.publish(_tool_started(loop, item, call, turn=turn))
        items.append(item)
    return tuple(items)


def _tool_started(loop: LoopContext, item: ItemId, call: ToolCall, *, turn: TurnId) -> ToolStarted:
    title = loop.tools.title(call)
    return ToolStarted(
        run=loop.run, turn=turn, item=item, call=call.id, name=call.name, title=title
    )


async def _keep_partial(
    loop: LoopContext,
    demand: RequestConfig,
    stream: AnswerStream,
    *,
    turn: TurnId,
    stop: StopReason,
    why: str | None,
) -> None:
    """Keep what came and what it used, and end everything that was announced."""
    info = demand.model.facts
    message = AssistantMessage(
        content=stream.draft.content(),
        api=info.api,
        provider=info.provider,
        model=info.id,
        stop_reason=stop,
        usage=stream.usage,
        error=why,
        at_ms=loop.clock.now_ms(),
    )
    if message.content:
        _ = await _keep(loop, demand, stream, message, turn=turn)
        _end_calls(loop, stream, turn=turn)
        return
    # A failure is a fact of the session even without words, and so is what was paid for; a cancel before is none.
    must_store = stop == "error" or message.usage.total
    entry = (
        await uncancelled(loop.recording.add_assistant(message, stream.entry))
        if must_store
        else None
    )
    _end_thoughts(loop, stream, turn=turn)
    if stream.announced:
        loop.publish(_message_ended(demand, stream, message, run=loop.run, turn=turn, entry=entry))
    _end_calls(loop, stream, turn=turn)


def _end_calls(loop: LoopContext, stream: AnswerStream, *, turn: TurnId) -> None:
    """End the calls of an answer that never became whole: they are in no transcript and never run."""
    for item, name, call in stream.calls.values():
        loop.publish(
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
