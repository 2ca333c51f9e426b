"""What every model promises, as checks that any implementation can be put through."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import anyio

from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from agent_core.providers import (
    Model,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageUpdate,
)
from tests.providers.replay import HELLO

Scene = Literal["words", "everything", "cut", "held", "refused"]
"""What the model is made to do.

`words`: say "Hello". `everything`: think "hm", say "Hello", call read {"path": "a"} as c1 and ls {} as c2.
`cut`: say "Hel" and end without a terminal event. `held`: say "Hel" and stay silent.
`refused`: fail for a rate limit before any part.
"""


@dataclass
class Staged:
    """A model in a scene."""

    model: Model
    left: Callable[[], bool]
    """Tell whether the scene has noticed that nobody listens any more."""


Stage = Callable[[Scene], AbstractAsyncContextManager[Staged]]


async def says_words_and_ends_with_the_answer(stage: Stage) -> None:
    async with stage("words") as staged:
        parts = await collected(staged.model)
    assert text_in(parts) == "Hello"
    message = answer_in(parts)
    facts = staged.model.facts
    assert message == AssistantMessage(
        content=(Text(text="Hello"),),
        api=facts.api,
        provider=facts.provider,
        model=facts.id,
        stop_reason="stop",
        usage=Usage(input=10, output=5),
        raw_stop_reason=message.raw_stop_reason,
        response_id=message.response_id,
        at_ms=message.at_ms,
    )


async def gives_thoughts_words_and_calls_in_order(stage: Stage) -> None:
    async with stage("everything") as staged:
        parts = await collected(staged.model)
    message = answer_in(parts)
    assert message.stop_reason == "tool_use"
    assert [type(part) for part in message.content] == [Thinking, Text, ToolCall, ToolCall]
    assert "".join(part.text for part in parts if isinstance(part, ThinkingDelta)) == "hm"
    assert message.tool_calls == (
        ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "a"}),
        ToolCall(id=ToolCallId("c2"), name="ls", arguments={}),
    )
    starts = [part for part in parts if isinstance(part, ToolCallStart)]
    assert [(start.index, start.name) for start in starts] == [(0, "read"), (1, "ls")]
    known = set[int]()
    for part in parts:
        if isinstance(part, ToolCallStart):
            known.add(part.index)
        elif isinstance(part, ToolCallDelta):
            assert part.index in known


async def fails_when_the_stream_has_no_end(stage: Stage) -> None:
    async with stage("cut") as staged:
        parts, error = await failed(staged.model)
    assert text_in(parts) == "Hel"
    assert error.reason in ("protocol", "network")
    assert not error.before_first_byte


async def fails_before_the_first_part_with_the_reason(stage: Stage) -> None:
    async with stage("refused") as staged:
        parts, error = await failed(staged.model)
    assert parts == []
    assert (error.reason, error.provider) == ("rate_limit", staged.model.facts.provider)
    assert error.before_first_byte


async def leaves_at_once_when_cancelled(stage: Stage) -> None:
    async with stage("held") as staged:
        first = anyio.Event()

        async def listen() -> None:
            async with staged.model.stream(HELLO) as parts:
                async for _ in parts:
                    first.set()

        with anyio.fail_after(BEGINS_S):
            left_s = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await first.wait()
                left_s = anyio.current_time()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(AT_ONCE_S - (anyio.current_time() - left_s)):
                await until_left(staged)


async def _first_words(parts: AsyncGenerator[StreamEvent, None]) -> StreamEvent:
    """Give the first part that is no count: some servers count the input before the first word."""
    async for part in parts:
        if not isinstance(part, UsageUpdate):
            return part
    raise AssertionError("the stream ended before a word")


async def leaves_at_once_when_its_context_is_left(stage: Stage) -> None:
    async with stage("held") as staged:
        with anyio.fail_after(BEGINS_S):
            left_s = anyio.current_time()
            async with staged.model.stream(HELLO) as parts:
                assert text_in([await _first_words(parts)]) in ("H", "Hel")
                left_s = anyio.current_time()
            with anyio.fail_after(AT_ONCE_S - (anyio.current_time() - left_s)):
                await until_left(staged)


AT_ONCE_S = 2.0
"""How long after it is left a stream may hold its connection."""
BEGINS_S = 20.0
"""How long a first part may take, with all that is imported for it."""
CHECKS = (
    says_words_and_ends_with_the_answer,
    gives_thoughts_words_and_calls_in_order,
    fails_when_the_stream_has_no_end,
    fails_before_the_first_part_with_the_reason,
    leaves_at_once_when_cancelled,
    leaves_at_once_when_its_context_is_left,
)


async def collected(model: Model, request: ModelRequest = HELLO) -> list[StreamEvent]:
    with anyio.fail_after(BEGINS_S):
        async with model.stream(request) as stream:
            return [part async for part in stream]


async def failed(model: Model) -> tuple[list[StreamEvent], ProviderError]:
    parts: list[StreamEvent] = []
    try:
        with anyio.fail_after(5):
            async with model.stream(HELLO) as stream:
                async for part in stream:
                    parts.append(part)  # noqa: PERF401 - what came before the error counts
    except ProviderError as error:
        return parts, error
    raise AssertionError(parts)


def text_in(parts: list[StreamEvent]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


def answer_in(parts: list[StreamEvent]) -> AssistantMessage:
    *before, last = parts
    assert isinstance(last, StreamFinished)
    assert not any(isinstance(part, StreamFinished) for part in before)
    return last.message


async def until_left(staged: Staged) -> None:
    while not staged.left():  # noqa: ASYNC110 - what it waits for has no event
        await anyio.sleep(0.001)


def staged_always(model: Model, left: Callable[[], bool]) -> AbstractAsyncContextManager[Staged]:
    """Stage a model that needs no server."""

    @asynccontextmanager
    async def context() -> AsyncGenerator[Staged]:
        yield Staged(model=model, left=left)

    return context()
