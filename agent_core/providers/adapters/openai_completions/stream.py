"""The chunks of Chat Completions, read into one answer."""

from collections.abc import Mapping

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.adapters.openai_completions.reasoning import FIELDS, ReasoningDetails
from agent_core.providers.adapters.openai_completions.usage import read_usage
from agent_core.providers.answer import (
    AnswerBuilder,
    OpenCall,
    OpenText,
    OpenThinking,
    read_arguments,
)
from agent_core.providers.failures import failure_from_event
from agent_core.providers.port import Answer, ModelFacts, Part

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

    def __init__(self, facts: ModelFacts, clock: Clock) -> None:
        self._facts = facts
        self._clock = clock
        self._builder = AnswerBuilder(facts)
        self._calls = _Calls(self._builder)
        self._details = ReasoningDetails()
        self._thought: tuple[OpenThinking, str | None] | None = None
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._response_id: str | None = None
        self._done = False

    @property
    def has_end(self) -> bool:
        """A finish reason came; or the closing mark behind a usage, as servers send that give no reason."""
        return self._finish is not None or (self._done and self._usage is not None)

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is expected."""
        return self._done

    def done(self) -> None:
        """Take the closing mark."""
        self._done = True

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Take one chunk."""
        if event.get("error") or name == b"error":
            raise failure_from_event(
                event, provider=self._facts.provider, parts_came=not self._builder.is_empty
            )
        choices = event.get("choices")
        if isinstance(choices, list) and choices:
            choice = json.as_object(choices[0])
            # A chunk of a second choice; only the first is the answer.
            if not choice.get("index"):
                self._read_choice(choice)
        usage = event.get("usage")
        if usage:
            self._read_usage(usage)
        elif "x_groq" in event:
            self._read_usage(json.as_object(event["x_groq"]).get("usage"))
        if self._response_id is None:
            response_id = event.get("id")
            self._response_id = response_id if isinstance(response_id, str) else None

    def take(self) -> list[Part]:
        """Give the parts since the last time."""
        return self._builder.take()

    def answer(self) -> Answer:
        """Give the whole answer.

        Raises:
            ProviderError: The provider refused, or gave a reason that nobody knows.
        """
        if self._details.signature(None) and self._thought is None:
            self._thought = (self._builder.open_thinking(), None)
        if self._thought is not None:
            block, field = self._thought
            block.signature = self._details.signature(field)
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._finish,
            usage=self._usage or Usage(),
            response_id=self._response_id or None,
            at_ms=self._clock.now_ms(),
        )

    def _read_choice(self, choice: JsonObject) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            content = delta.get("content")
            if content:
                self._read_content(content)
            if len(delta) > 1 or not content:
                self._read_rest(delta)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish
        usage = choice.get("usage")
        if usage:
            self._read_usage(usage)

    def _read_content(self, content: JsonValue) -> None:
        if isinstance(content, str):
            self._say(content)
            return
        for piece in content if isinstance(content, list) else ():
            part = json.as_object(piece)
            text = part.get("text")
            if isinstance(text, str):
                self._say(text)
            thinking = part.get("thinking")
            for inner in thinking if isinstance(thinking, list) else ():
                thought = json.as_object(inner).get("text")
                if isinstance(thought, str):
                    self._think(thought, None)

    def _read_rest(self, delta: JsonObject) -> None:
        for field in FIELDS:
            thought = delta.get(field)
            if isinstance(thought, str) and thought:
                self._think(thought, field)
                break
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            self._details.add(json.as_object(detail))
        refusal = delta.get("refusal")
        if isinstance(refusal, str):
            self._say(refusal)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._calls.read(json.as_object(call))

    def _say(self, text: str) -> None:
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
        usage = read_usage(json.as_object(value))
        # Some send a usage of zeros with every chunk, after the true one too.
        if usage is not None and (usage.total > 0 or self._usage is None):
            self._usage = usage

    def _stop_reason(self) -> StopReason:
        raw = self._finish
        provider = self._facts.provider
        if raw is None:
            return "tool_use" if self._builder.has_calls else "stop"
        if raw in REFUSALS:
            message = f"{provider} refused to answer ({raw})"
            raise ProviderError(message, reason="refused", provider=provider)
        if raw == "model_context_window_exceeded" and self._builder.is_empty:
            message = f"{self._facts.ref} had no room left to answer ({raw})"
            raise ProviderError(message, reason="context_overflow", provider=provider)
        if raw not in STOPS:
            message = f"{provider} ended the answer for the unknown reason {raw!r}; try again"
            raise ProviderError(message, reason="server", provider=provider)
        stop = STOPS[raw]
        return "tool_use" if stop == "stop" and self._builder.has_calls else stop


class _Calls:
    """Tells the tool calls of a stream apart, though some servers number them badly."""

    def __init__(self, builder: AnswerBuilder) -> None:
        self._builder = builder
        self._by_index: dict[int, OpenCall] = {}
        self._last: OpenCall | None = None

    def read(self, delta: JsonObject) -> None:
        """Take a piece of a call: a new one, or more of one that is open."""
        function = json.as_object(delta.get("function"))
        name = function.get("name")
        call_id = delta.get("id")
        call = self._call(
            delta,
            call_id=call_id if isinstance(call_id, str) else "",
            name=name if isinstance(name, str) else "",
        )
        if call is None:
            return
        google = json.as_object(json.as_object(delta.get("extra_content")).get("google"))
        signature = google.get("thought_signature")
        if isinstance(signature, str) and signature:
            call.signature = signature
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._builder.grow(call, arguments)
        elif json.is_object(arguments):
            self._builder.grow(call, json.encode(arguments).decode())

    def _call(self, delta: JsonObject, *, call_id: str, name: str) -> OpenCall | None:
        index = delta.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else self._last
        if known is not None and _is_new(known, call_id=call_id, name=name):
            known = None
        if known is None:
            if (
                not call_id
                and not name
                and not json.as_object(delta.get("function")).get("arguments")
            ):
                return None
            known = self._builder.open_call(id=call_id, name=name)
        if call_id and not known.id:
            known.id = call_id
        if name:
            self._builder.name_call(known, name)
        if isinstance(index, int):
            self._by_index[index] = known
        self._last = known
        return known


def _is_new(known: OpenCall, *, call_id: str, name: str) -> bool:
    """Tell a second call from more of the first: Copilot gives both the index 0, others give none."""
    if call_id and known.id:
        return call_id != known.id
    # Without ids, a name behind whole arguments can only begin another call: Gemini's ids are all "".
    whole = bool(name and known.name and known.pieces and not call_id)
    return whole and read_arguments("".join(known.pieces))[1] is None
