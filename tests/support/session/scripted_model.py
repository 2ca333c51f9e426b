"""A model that says what a test wrote down: a real implementation of the port, without a network."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from agent_core.kernel import JsonObject, ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    Text,
    Thinking,
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
)

SCRIPTED_FACTS = ModelInfo(
    provider="scripted",
    id="model-1",
    api="embedded",
    name="Scripted",
    context_window=128_000,
    max_tokens=16_384,
)


class Gate:
    """Holds a stream open: the test waits until it is reached, looks around, and releases it."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.released = anyio.Event()

    def release(self) -> None:
        """Let the stream go on."""
        self.released.set()

    async def wait(self) -> None:
        """Say that the stream has come here, then wait for the release."""
        self.reached.set()
        await self.released.wait()


Step: TypeAlias = StreamEvent | Gate | Exception
"""A part to give, a place to wait, or an error to fail with in the middle of the stream."""
Turn: TypeAlias = "Sequence[Step] | Exception | Callable[[ModelRequest], Turn]"
"""One answer: its steps, an error on entering, or a function that makes either from the request."""


class ScriptedModel:
    """Gives its turns one after the other and keeps the requests it was asked.

    A turn without an `Answer` at its end fails like a stream that was cut off.
    """

    def __init__(self, turns: Sequence[Turn] = (), *, facts: ModelInfo = SCRIPTED_FACTS) -> None:
        self._facts = facts
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.open_streams = 0
        """Streams that were entered and not left."""
        self.left_early = 0
        """Streams that were left before their `Answer`: by cancellation, an error or a break."""

    @property
    def facts(self) -> ModelInfo:
        return self._facts

    @property
    def turns_left(self) -> int:
        """Turns nobody has asked for yet."""
        return len(self._turns)

    def add(self, *turns: Turn) -> None:
        """Append turns while the test goes on."""
        self._turns.extend(turns)

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        self.requests.append(request)
        if not self._turns:
            message = f"the script is over: request {len(self.requests)} was not expected"
            raise AssertionError(message)
        steps = self._steps(self._turns.pop(0), request)
        await checkpoint()
        self.open_streams += 1
        parts = self._play(steps)
        try:
            yield parts
        finally:
            self.open_streams -= 1
            with anyio.CancelScope(shield=True):
                await parts.aclose()

    def _steps(self, turn: Turn, request: ModelRequest) -> Sequence[Step]:
        while callable(turn):
            turn = turn(request)
        if isinstance(turn, Exception):
            raise turn
        return turn

    async def _play(self, steps: Sequence[Step]) -> AsyncGenerator[StreamEvent, None]:
        answered = False
        try:
            for step in steps:
                await checkpoint()
                match step:
                    case Gate():
                        await step.wait()
                    case Exception():
                        raise step
                    case StreamFinished():
                        answered = True
                        yield self._stamped(step)
                        return
                    case _:
                        yield step
            raise ProviderError(
                "the stream ended without a terminal event",
                reason="protocol",
                provider=self._facts.provider,
            )
        finally:
            self.left_early += not answered

    def _stamped(self, answer: StreamFinished) -> StreamFinished:
        facts = self._facts
        stamped = replace(answer.message, api=facts.api, provider=facts.provider, model=facts.id)
        return StreamFinished(message=stamped)


def answer(
    *content: AssistantContent,
    stop_reason: StopReason = "stop",
    usage: Usage | None = None,
    error: str | None = None,
    at_ms: int = 0,
) -> StreamFinished:
    """Make the last part of a turn."""
    return StreamFinished(
        message=AssistantMessage(
            content=content,
            api=SCRIPTED_FACTS.api,
            provider=SCRIPTED_FACTS.provider,
            model=SCRIPTED_FACTS.id,
            stop_reason=stop_reason,
            usage=usage or Usage(),
            error=error,
            at_ms=at_ms,
        )
    )


def say(
    *pieces: str, stop_reason: StopReason = "stop", usage: Usage | None = None
) -> tuple[Step, ...]:
    """Make a turn of words, one delta per piece."""
    deltas = [TextDelta(text=piece) for piece in pieces]
    text = "".join(pieces)
    content = (Text(text=text),) if text else ()
    return (*deltas, answer(*content, stop_reason=stop_reason, usage=usage))


def think(thought: str, *, signature: str | None = None) -> tuple[Step, ...]:
    """Make a turn that only thinks; `both` joins it with others."""
    return (
        ThinkingDelta(text=thought),
        answer(Thinking(text=thought, signature=signature)),
    )


def call(
    name: str,
    arguments: JsonObject | None = None,
    *,
    id: str = "c1",  # noqa: A002 - reads as the wire does
    arguments_error: str | None = None,
    stop_reason: StopReason = "tool_use",
    usage: Usage | None = None,
) -> tuple[Step, ...]:
    """Make a turn of one tool call."""
    asked = ToolCall(
        id=ToolCallId(id), name=name, arguments=arguments or {}, arguments_error=arguments_error
    )
    return (
        ToolCallStart(index=0, name=name, id=id),
        ToolCallDelta(index=0, text=json.dumps(arguments or {})),
        answer(asked, stop_reason=stop_reason, usage=usage),
    )


def both(*turns: str | Sequence[Step], stop_reason: StopReason | None = None) -> tuple[Step, ...]:
    """Join turns into one answer, in order: words (or a text), thoughts, tool calls, gates.

    The usages are added up; it stops with `tool_use` when there is a call, unless told otherwise.
    """
    steps: list[Step] = []
    content: list[AssistantContent] = []
    usage = Usage()
    calls = 0
    for turn in turns:
        first = calls
        for step in say(turn) if isinstance(turn, str) else turn:
            match step:
                case StreamFinished(message=message):
                    content.extend(message.content)
                    usage = usage.plus(message.usage)
                    calls += len(message.tool_calls)
                case ToolCallStart() | ToolCallDelta():
                    steps.append(replace(step, index=step.index + first))
                case _:
                    steps.append(step)
    reason = stop_reason or ("tool_use" if calls else "stop")
    return (*steps, answer(*content, stop_reason=reason, usage=usage))
