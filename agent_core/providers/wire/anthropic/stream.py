"""The events of the Messages API, read into one answer: its own servers and Vertex AI send the same."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import threadsafe
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.stream import BuildingReader, SseEvent, decoded
from agent_core.providers.messages.builder import OpenBlock, OpenText, OpenThinking, count, priced
from agent_core.providers.model import ModelInfo, StreamFinished

STOPS: Mapping[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
REFUSALS = ("refusal", "sensitive")
LONG_WRITES = "ephemeral_1h_input_tokens"
"""Of the tokens written to the cache, those that are kept for an hour."""
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    LONG_WRITES,
)


class _Text(Struct, frozen=True, tag_field="type", tag="text_delta"):
    text: str


class _TextDelta(Struct, frozen=True, tag_field="type", tag="content_block_delta"):
    """An event that adds text to a block."""

    index: int
    delta: _Text
    base_resp: None = None


TEXT_DELTAS = msgspec.json.Decoder(threadsafe(_TextDelta))


class AnthropicReader(BuildingReader):
    """Reads one stream."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        super().__init__(model, clock)
        self._blocks: dict[JsonValue, OpenBlock | None] = {}
        self._counts: dict[str, int] = {}
        self._response_id: str | None = None
        self._stop: str | None = None
        self._why: str = ""
        self._over = False

    @property
    @override
    def has_end(self) -> bool:
        return self._over

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one event; unknown kinds are ignored."""
        match event.get("type"):
            case "content_block_delta":
                block = self._blocks.get(event.get("index"))
                if block is not None:
                    self._grow(block, json.as_object(event.get("delta")))
            case "content_block_start":
                self._open(event.get("index"), json.as_object(event.get("content_block")))
            case "message_start":
                self._start(json.as_object(event.get("message")))
            case "message_delta":
                self._end(event)
            case "message_stop":
                self._over = True
            case kind:
                if kind == "error" or name == b"error" or event.get("error"):
                    raise self._failure(event)

    @override
    def read_texts(self, events: Sequence[SseEvent]) -> bool:
        deltas = decoded(TEXT_DELTAS, events)
        if not deltas:
            return False
        index = deltas[0].index
        block = self._blocks.get(index)
        if not isinstance(block, OpenText) or any(delta.index != index for delta in deltas):
            return False
        self._builder.grow(block, "".join([delta.delta.text for delta in deltas]))
        return True

    @override
    def read_whole(self, body: JsonObject) -> None:
        content = body.get("content")
        if body.get("type") != "message" or not isinstance(content, list):
            return
        self._start(body)
        for index, block in enumerate(content):
            self._open(index, json.as_object(block))
        self._end({"delta": body})
        self._over = True

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; the input is counted in the first event."""
        counts = self._counts
        usage = Usage(
            input=counts.get("input_tokens", 0),
            output=counts.get("output_tokens", 0),
            cache_read=counts.get("cache_read_input_tokens", 0),
            cache_write=counts.get("cache_creation_input_tokens", 0),
        )
        return priced(usage, self._model.prices, long_writes=counts.get(LONG_WRITES, 0))

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: The provider refused, or gave a reason that nobody knows.
        """
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._stop,
            usage=self.usage,
            response_id=self._response_id,
            at_ms=self._clock.now_ms(),
        )

    def _start(self, message: JsonObject) -> None:
        response_id = message.get("id")
        if isinstance(response_id, str):
            self._response_id = response_id
        self._count(message.get("usage"))

    def _end(self, event: JsonObject) -> None:
        delta = json.as_object(event.get("delta"))
        stop = delta.get("stop_reason")
        if isinstance(stop, str):
            self._stop = stop
        explanation = json.as_object(delta.get("stop_details")).get("explanation")
        if isinstance(explanation, str):
            self._why = explanation
        self._count(event.get("usage"))

    def _open(self, index: JsonValue, block: JsonObject) -> None:
        builder = self._builder
        opened: OpenBlock | None = None
        match block.get("type"):
            case "text":
                opened = builder.open_text()
                builder.grow(opened, json.as_text(block.get("text")))
            case "thinking":
                opened = builder.open_thinking()
                opened.signature = json.as_text(block.get("signature")) or None
                builder.grow(opened, json.as_text(block.get("thinking")))
            case "redacted_thinking":
                opened = builder.open_thinking()
                opened.redacted = True
                opened.signature = json.as_text(block.get("data"))
            case "tool_use":
                opened = builder.open_call(
                    id=json.as_text(block.get("id")), name=json.as_text(block.get("name"))
                )
                whole = block.get("input")
                # Usually an empty object, with the text to follow; some gateways send the whole here.
                if whole and json.is_object(whole):
                    builder.grow(opened, json.encode(whole).decode())
            case _:
                # What the provider's own tools did: of no use to us, and never a call of ours.
                pass
        self._blocks[index] = opened

    def _grow(self, block: OpenBlock, delta: JsonObject) -> None:
        match delta.get("type"):
            case "text_delta" if isinstance(block, OpenText):
                self._builder.grow(block, json.as_text(delta.get("text")))
            case "thinking_delta" if isinstance(block, OpenThinking):
                self._builder.grow(block, json.as_text(delta.get("thinking")))
            case "signature_delta" if isinstance(block, OpenThinking):
                block.signature = (block.signature or "") + json.as_text(delta.get("signature"))
            case "input_json_delta" if not isinstance(block, OpenText | OpenThinking):
                self._builder.grow(block, json.as_text(delta.get("partial_json")))
            case _:
                pass

    def _count(self, usage: JsonValue) -> None:
        """Merge counts: the last event repeats those of the first, so that adding would double them."""
        reported = json.as_object(usage)
        by_age = json.as_object(reported.get("cache_creation"))
        for key, value in (*reported.items(), *by_age.items()):
            if key in COUNTS and isinstance(value, int | float):
                self._counts[key] = count(value)

    def _stop_reason(self) -> StopReason:
        raw = self._stop
        provider = self._model.provider
        if raw is None:
            return "tool_use" if self._builder.has_calls else "stop"
        if raw in REFUSALS:
            message = f"{provider} refused to answer: {self._why or raw}"
            raise ProviderError(message, reason="refused", provider=provider)
        if raw == "model_context_window_exceeded" and self._builder.is_empty:
            message = f"{self._model.ref} had no room left to answer ({raw})"
            raise ProviderError(message, reason="context_overflow", provider=provider)
        if raw not in STOPS:
            message = f"{provider} ended the answer for the unknown reason {raw!r}; try again"
            raise ProviderError(message, reason="server", provider=provider)
        return STOPS[raw]
