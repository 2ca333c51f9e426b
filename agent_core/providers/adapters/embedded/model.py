"""The embedded model behind the port: the next step of a repair, streamed as a provider streams it."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio.to_thread
from anyio.lowlevel import checkpoint

from agent_core.kernel import Clock, ToolCallId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    Cost,
    Text,
    ToolCall,
    Usage,
)
from agent_core.providers.adapters.embedded import EMBEDDED_FACTS
from agent_core.providers.adapters.embedded.plan import CallTool, FinalText, PlannedStep, next_step
from agent_core.providers.model import (
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)

PIECE = re.compile(r"\S+\s*(?:\S+\s*){0,2}")
"""Three words: as much as a real stream brings at a time."""
ARGUMENT_PIECES = 4


class EmbeddedModel:
    """A deterministic program that repairs failing Python tests with the tools it is given.

    It has no state between calls: it reads its earlier steps from the transcript. It uses no tokens and costs
    nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return EMBEDDED_FACTS

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None], None]:
        """Decide on the next step and stream it."""
        # A long output takes some milliseconds to read: other sessions should not wait for it.
        step = await anyio.to_thread.run_sync(next_step, request)
        parts = self._parts(step, request)
        try:
            yield parts
        finally:
            with anyio.CancelScope(shield=True):
                await parts.aclose()

    async def _parts(
        self, step: PlannedStep, request: ModelRequest
    ) -> AsyncGenerator[StreamEvent, None]:
        answer = self._answer(step, request)
        for part in _deltas(answer):
            await checkpoint()
            yield part
        yield StreamFinished(message=answer)

    def _answer(self, step: PlannedStep, request: ModelRequest) -> AssistantMessage:
        content: tuple[AssistantContent, ...] = (Text(text=step.text),)
        match step:
            case FinalText():
                stop_reason = "stop"
            case CallTool(name=name, arguments=arguments):
                call = ToolCallId(f"repair_{len(request.messages)}")
                content = (*content, ToolCall(id=call, name=name, arguments=arguments))
                stop_reason = "tool_use"
        return AssistantMessage(
            content=content,
            api=EMBEDDED_FACTS.api,
            provider=EMBEDDED_FACTS.provider,
            model=EMBEDDED_FACTS.id,
            stop_reason=stop_reason,
            usage=Usage(cost=Cost()),
            at_ms=self._clock.now_ms(),
        )


def _deltas(answer: AssistantMessage) -> Iterator[StreamEvent]:
    for match in PIECE.finditer(answer.text):
        yield TextDelta(text=match[0])
    for index, call in enumerate(answer.tool_calls):
        yield ToolCallStart(index=index, name=call.name, id=call.id)
        raw = json.dumps(call.arguments, ensure_ascii=False)
        size = max(1, -(-len(raw) // ARGUMENT_PIECES))
        for start in range(0, len(raw), size):
            yield ToolCallDelta(index=index, text=raw[start : start + size])
