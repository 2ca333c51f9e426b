"""The events of Converse, read into one answer."""

from collections.abc import Mapping

from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.aws_event_stream import EXCEPTION, EventStreamDecoder
from agent_core.providers.http.stream import USAGE_FOLLOWS_S, BuildingReader
from agent_core.providers.messages.builder import (
    OpenBlock,
    OpenCall,
    OpenText,
    OpenThinking,
    count,
    priced,
)
from agent_core.providers.model import ModelInfo, StreamFinished

STOPS: Mapping[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    # What came is what the guardrail lets through: words it has masked, or its own.
    "guardrail_intervened": "stop",
}
REFUSALS = ("content_filtered", "refusal")
FULL = "model_context_window_exceeded"
GUARDED = "guardrail_intervened"
STATUSES: Mapping[str, int] = {
    "throttlingException": 429,
    "serviceUnavailableException": 503,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "modelTimeoutException": 408,
    "validationException": 400,
}
"""The status that each exception has when it is told before the stream."""


class ConverseReader(BuildingReader):
    """Reads one stream."""

    def __init__(self, model: ModelInfo, clock: Clock, *, framing: EventStreamDecoder) -> None:
        super().__init__(model, clock)
        self._framing = framing
        self._blocks: dict[JsonValue, OpenBlock | None] = {}
        self._stop: str | None = None
        self._usage: Usage | None = None

    @property
    @override
    def has_end(self) -> bool:
        """Return whether the event came that says the answer is whole, and no frame is half there behind it."""
        return self._stop is not None and not self._framing.is_inside

    @property
    @override
    def is_over(self) -> bool:
        """Return whether nothing more is expected: the counts come behind the end."""
        return self._stop is not None and self._usage is not None

    @property
    @override
    def after_end_s(self) -> float:
        return USAGE_FOLLOWS_S

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one event; unknown kinds are ignored.

        Raises:
            ProviderError: The event reports an error.
        """
        match name:
            case b"contentBlockDelta":
                self._grow(event.get("contentBlockIndex"), json.as_object(event.get("delta")))
            case b"contentBlockStart":
                self._open(event.get("contentBlockIndex"), json.as_object(event.get("start")))
            case b"messageStop":
                stop = event.get("stopReason")
                self._stop = stop if isinstance(stop, str) else ""
            case b"metadata":
                self._count(event.get("usage"))
            case _ if name == EXCEPTION:
                raise self._failure(event)
            case _:
                pass

    @override
    def read_whole(self, body: JsonObject) -> None:
        message = json.as_object(json.as_object(body.get("output")).get("message"))
        content = message.get("content")
        stop = body.get("stopReason")
        if not isinstance(content, list) or not isinstance(stop, str):
            return
        for index, value in enumerate(content):
            block = json.as_object(value)
            self._open(index, block)
            self._grow(index, _as_delta(block))
        self._stop = stop
        self._count(body.get("usage"))

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; they come behind the end."""
        return priced(self._usage or Usage(), self._model.prices)

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: The provider refused, or gave a reason that nobody knows.
        """
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._stop,
            usage=self.usage,
            response_id=None,
            at_ms=self._clock.now_ms(),
        )

    def _open(self, index: JsonValue, start: JsonObject) -> None:
        """Open what announces itself; words and thoughts do not, they only come."""
        call = start.get("toolUse")
        if json.is_object(call):
            self._blocks[index] = self._builder.open_call(
                id=json.as_text(call.get("toolUseId")), name=json.as_text(call.get("name"))
            )
        elif "toolResult" in start:
            # What the provider's own tools gave: nothing for us.
            self._blocks[index] = None

    def _grow(self, index: JsonValue, delta: JsonObject) -> None:
        if index in self._blocks and self._blocks[index] is None:
            return
        text = delta.get("text")
        call = delta.get("toolUse")
        thought = delta.get("reasoningContent")
        block = self._blocks.get(index)
        if isinstance(text, str):
            if not isinstance(block, OpenText):
                block = self._blocks[index] = self._builder.open_text()
            self._builder.grow(block, text)
        elif json.is_object(call):
            if isinstance(block, OpenCall):
                self._builder.grow(block, json.as_text(call.get("input")))
        elif json.is_object(thought):
            if not isinstance(block, OpenThinking):
                block = self._blocks[index] = self._builder.open_thinking()
            self._think(block, thought)

    def _think(self, block: OpenThinking, thought: JsonObject) -> None:
        self._builder.grow(block, json.as_text(thought.get("text")))
        signature = json.as_text(thought.get("signature"))
        redacted = json.as_text(thought.get("redactedContent"))
        if redacted:
            block.redacted = True
        if signature or redacted:
            block.signature = (block.signature or "") + signature + redacted

    def _count(self, value: JsonValue) -> None:
        usage = json.as_object(value)
        self._usage = Usage(
            input=count(usage.get("inputTokens")),
            output=count(usage.get("outputTokens")),
            cache_read=count(usage.get("cacheReadInputTokens")),
            cache_write=count(usage.get("cacheWriteInputTokens")),
        )

    def _stop_reason(self) -> StopReason:
        raw = self._stop or ""
        provider = self._model.provider
        empty = self._builder.is_empty
        if raw in REFUSALS or (raw == GUARDED and empty):
            message = f"{provider} refused to answer ({raw})"
            raise ProviderError(message, reason="refused", provider=provider)
        if raw == FULL and empty:
            message = f"{self._model.ref} had no room left to answer ({raw})"
            raise ProviderError(message, reason="context_overflow", provider=provider)
        if raw not in STOPS:
            message = f"{provider} ended the answer for the unknown reason {raw!r}; try again"
            raise ProviderError(message, reason="server", provider=provider)
        stop = STOPS[raw]
        return "tool_use" if stop == "stop" and self._builder.has_calls else stop

    @override
    def _failure(self, event: JsonObject) -> ProviderError:
        kind = json.as_text(event.get("type"))
        error = {"type": kind, "message": event.get("message"), "code": STATUSES.get(kind)}
        return super()._failure({"error": error})


def _as_delta(block: JsonObject) -> JsonObject:
    """Return a whole block the form that it would have had in a stream."""
    call = block.get("toolUse")
    if json.is_object(call):
        arguments = json.encode(json.as_object(call.get("input"))).decode()
        return {"toolUse": {"input": arguments}}
    thought = json.as_object(block.get("reasoningContent"))
    if "reasoningText" in thought:
        return {"reasoningContent": thought["reasoningText"]}
    return block
