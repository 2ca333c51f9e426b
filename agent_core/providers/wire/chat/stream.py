"""The chunks of Chat Completions, of whatever maker, read into one answer."""

from collections.abc import Mapping

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.errors import failure_from_event
from agent_core.providers.http.stream import NOTHING_FOLLOWS_S, USAGE_FOLLOWS_S
from agent_core.providers.messages.builder import MessageBuilder, OpenText, OpenThinking
from agent_core.providers.messages.pricing import priced
from agent_core.providers.model import ModelInfo, StreamEvent, StreamFinished
from agent_core.providers.wire.chat.reasoning import FIELDS, OPAQUE, ReasoningDetails
from agent_core.providers.wire.chat.tool_calls import StreamedCalls
from agent_core.providers.wire.chat.usage import Counted, read_usage

STOPS: Mapping[str, StopReason] = {
    "stop": "stop",
    "end": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "tool_use": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
}
REFUSALS = ("content_filter", "refusal", "sensitive")


class ChunkReader:
    """Reads one stream."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._builder = MessageBuilder(model)
        self._calls = StreamedCalls(self._builder)
        self._details = ReasoningDetails()
        self._thought: tuple[OpenThinking, str | None] | None = None
        self._finish: str | None = None
        self._counted: Counted | None = None
        self._response_id: str | None = None
        self._done = False

    @property
    def has_end(self) -> bool:
        """A finish reason came; or the closing mark behind a usage, as servers send that give no reason."""
        return self._finish is not None or (self._done and self._counted is not None)

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is expected."""
        return self._done

    @property
    def after_end_s(self) -> float:
        """How long to wait for what may come behind the end, in seconds."""
        return USAGE_FOLLOWS_S if self._counted is None else NOTHING_FOLLOWS_S

    def done(self) -> None:
        """Record the closing mark."""
        self._done = True

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one chunk."""
        usage = event.get("usage")
        if usage:
            self._read_usage(usage)
        # Some servers give the error itself instead of an object that has it.
        if event.get("error") or name == b"error" or event.get("object") == "error":
            failure = self._failure(event)
            if self._repeats_length(failure):
                self._done = True
                return
            raise failure
        choices = event.get("choices")
        if isinstance(choices, list) and choices:
            choice = json.as_object(choices[0])
            # A chunk of a second choice; only the first is the answer.
            if not choice.get("index"):
                self._read_choice(choice)
        if not usage and "x_groq" in event:
            self._read_usage(json.as_object(event["x_groq"]).get("usage"))
        if self._response_id is None:
            response_id = event.get("id")
            self._response_id = response_id if isinstance(response_id, str) else None

    def read_whole(self, body: JsonObject) -> None:
        """Read a complete, non-streamed answer."""
        if body.get("object") == "error":
            raise self._failure(body)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        for number, value in enumerate(choices):
            choice = json.as_object(value)
            if choice.get("error"):
                raise self._failure(choice)
            message = json.as_object(choice.get("message"))
            if number == 0:
                self._read_thoughts(message)
                self._read_content(message.get("content"))
                self._read_refusal(message)
                finish = choice.get("finish_reason")
                self._finish = finish if isinstance(finish, str) else None
            # Copilot gives Claude's words in the first choice and its calls in later ones.
            self._read_calls(message)
        self._done = True
        self._read_usage(body.get("usage"))
        # That it came in one piece is its end, also without a reason and a usage.
        self._counted = self._counted or Counted(usage=Usage())
        response_id = body.get("id")
        self._response_id = response_id if isinstance(response_id, str) else None

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; most servers count in the last chunk."""
        counted = self._counted or Counted(usage=Usage())
        return priced(counted.usage, self._model.prices, billed=counted.billed)

    def take(self) -> list[StreamEvent]:
        """Return the parts since the last time."""
        return self._builder.take()

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: The provider refused, or gave a reason that nobody knows.
        """
        if self._thought is None and not self._details.is_empty:
            self._thought = (self._builder.open_thinking(), None)
        if self._thought is not None:
            block, field = self._thought
            block.signature = self._details.signature(field) or block.signature
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._finish,
            usage=self.usage,
            response_id=self._response_id or None,
            at_ms=self._clock.now_ms(),
        )

    def _failure(self, event: JsonObject) -> ProviderError:
        return failure_from_event(
            event, provider=self._model.provider, parts_came=not self._builder.is_empty
        )

    def _repeats_length(self, failure: ProviderError) -> bool:
        """Check whether an error reports the output limit that the finish reason has reported, as OpenRouter's does."""
        return (
            STOPS.get(self._finish or "") == "length"
            and failure.reason in {"invalid_request", "context_overflow"}
            and not self._builder.is_empty
        )

    def _read_choice(self, choice: JsonObject) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            content = delta.get("content")
            if content:
                self._read_content(content)
            if len(delta) > 1 or not content:
                self._read_thoughts(delta)
                self._read_refusal(delta)
                self._read_calls(delta)
        if choice.get("error"):
            # OpenRouter's way to tell of what failed behind it.
            raise self._failure(choice)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish
        usage = choice.get("usage")
        if usage:
            self._read_usage(usage)

    def _read_content(self, content: JsonValue) -> None:
        if isinstance(content, str):
            self._append_text(content)
            return
        for piece in content if isinstance(content, list) else ():
            part = json.as_object(piece)
            text = part.get("text")
            if isinstance(text, str):
                self._append_text(text)
            if part.get("type") == "thinking":
                self._read_thought(part)

    def _read_thought(self, part: JsonObject) -> None:
        """Mistral's form: a list of pieces, which later ones go on with."""
        thinking = part.get("thinking")
        for inner in thinking if isinstance(thinking, list) else (thinking,):
            thought = inner if isinstance(inner, str) else json.as_object(inner).get("text")
            if isinstance(thought, str) and thought:
                self._think(thought, None)
        signature = part.get("signature")
        block = self._builder.last
        if isinstance(signature, str) and signature and isinstance(block, OpenThinking):
            block.signature = signature

    def _read_thoughts(self, delta: JsonObject) -> None:
        for field in FIELDS:
            thought = delta.get(field)
            if isinstance(thought, str) and thought:
                self._think(thought, field)
                break
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            self._details.add(json.as_object(detail))
        opaque = delta.get(OPAQUE)
        if isinstance(opaque, str) and opaque:
            self._details.seal(opaque)

    def _read_refusal(self, delta: JsonObject) -> None:
        refusal = delta.get("refusal")
        if isinstance(refusal, str):
            self._append_text(refusal)

    def _read_calls(self, delta: JsonObject) -> None:
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._calls.read(json.as_object(call))

    def _append_text(self, text: str) -> None:
        block = self._builder.last
        if not isinstance(block, OpenText):
            # An empty piece between two thoughts or calls is no text of its own.
            if not text:
                return
            block = self._builder.open_text()
        self._builder.grow(block, text)

    def _think(self, text: str, field: str | None) -> None:
        block = self._builder.last
        if not isinstance(block, OpenThinking):
            block = self._builder.open_thinking()
            if field is not None:
                block.signature = field
            if self._thought is None:
                self._thought = (block, field)
        self._builder.grow(block, text)

    def _read_usage(self, value: JsonValue) -> None:
        counted = read_usage(json.as_object(value))
        # Some send a usage of zeros with every chunk, after the true one too.
        if counted is not None and (counted.usage.total > 0 or self._counted is None):
            self._counted = counted

    def _stop_reason(self) -> StopReason:
        raw = self._finish
        provider = self._model.provider
        if not raw:
            return "tool_use" if self._builder.has_calls else "stop"
        if raw in REFUSALS:
            message = f"{provider} refused to answer ({raw})"
            raise ProviderError(message, reason="refused", provider=provider)
        if raw == "model_context_window_exceeded" and self._builder.is_empty:
            message = f"{self._model.ref} had no room left to answer ({raw})"
            raise ProviderError(message, reason="context_overflow", provider=provider)
        if raw not in STOPS:
            message = f"{provider} ended the answer for the unknown reason {raw!r}; try again"
            raise ProviderError(message, reason="server", provider=provider)
        stop = STOPS[raw]
        return "tool_use" if stop == "stop" and self._builder.has_calls else stop
