"""The stream of a chat completion, with the forms in which servers send reasoning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value, threadsafe
from agent_core.messages import StopReason, Thinking, Usage
from agent_core.providers.http.stream import (
    NOTHING_FOLLOWS_S,
    USAGE_FOLLOWS_S,
    BuildingReader,
    SseEvent,
    decoded,
)
from agent_core.providers.messages.builder import (
    MessageBuilder,
    OpenCall,
    OpenText,
    OpenThinking,
    billed,
    count,
    is_whole_object,
    priced,
)
from agent_core.providers.model import ModelInfo, StreamFinished

OPAQUE = "reasoning_opaque"
"""Copilot's field for opaque reasoning; Gemini refuses its own tool calls unless the field is returned."""
FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
GROWING = ("text", "summary")
_Json = dict[str, JsonValue]


class ReasoningDetails:
    """Assembler of `reasoning_details` from their pieces."""

    def __init__(self) -> None:
        self._entries: list[_Json] = []
        self._grown: list[dict[str, list[str]]] = []
        self._opaque = ""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to send back but the thought's text."""
        return not self._entries and not self._opaque

    def seal(self, opaque: str) -> None:
        """Store the opaque value that replaces a thought's withheld text."""
        self._opaque = opaque

    def add(self, entry: JsonObject) -> None:
        """Add one piece: more of the last entry, or a new one."""
        if not self._entries or not _continues(self._entries[-1], entry):
            self._entries.append({})
            self._grown.append({})
        last, grown = self._entries[-1], self._grown[-1]
        for key, value in entry.items():
            if key in GROWING and isinstance(value, str):
                grown.setdefault(key, []).append(value)
            elif value is not None or key not in last:
                last[key] = value

    def signature(self, field: str | None) -> str | None:
        """Return what must be kept so that the thought can go back: the field's name, with details as JSON."""
        if self.is_empty:
            return field
        kept: _Json = {}
        if self._entries:
            kept["details"] = [
                {**entry, **{key: "".join(pieces) for key, pieces in grown.items()}}
                for entry, grown in zip(self._entries, self._grown, strict=True)
            ]
        if field:
            kept["field"] = field
        if self._opaque:
            kept["opaque"] = self._opaque
        return json.encode(kept).decode()


def replayed(thoughts: Iterable[Thinking]) -> JsonObject:
    """Return the fields that bring the thoughts of an answer back to the model that had them."""
    fields: _Json = {}
    texts: dict[str, str] = {}
    details: list[JsonValue] = []
    for thought in thoughts:
        kept = _kept(thought.signature or "")
        field = kept.get("field")
        if isinstance(field, str) and field in FIELDS:
            texts[field] = texts.get(field, "") + thought.text
        entries = kept.get("details")
        details.extend(entries if isinstance(entries, list) else ())
        opaque = kept.get("opaque")
        if isinstance(opaque, str):
            fields[OPAQUE] = opaque
    fields.update(texts)
    if details:
        fields["reasoning_details"] = details
    return fields


def _kept(signature: str) -> JsonObject:
    """Read what `ReasoningDetails.signature` wrote."""
    if not signature.startswith("{"):
        return {"field": signature}
    try:
        return json.as_object(json.decode(signature))
    except ValueError:
        return {}


def _continues(last: JsonObject, entry: JsonObject) -> bool:
    same = all(last.get(key) == entry.get(key) for key in ("type", "index"))
    return same and entry.get("id") in (None, last.get("id"))


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


class _TextDelta(Struct, frozen=True, forbid_unknown_fields=True):
    content: str
    role: str | None = None
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None
    tool_calls: None = None
    function_call: None = None


class _TextChoice(Struct, frozen=True):
    delta: _TextDelta
    index: Literal[0] | None = None
    finish_reason: None = None
    error: None = None
    usage: None = None


class _TextChunk(Struct, frozen=True):
    """A chunk that holds more text; of the fields that are read otherwise, each is absent or null."""

    choices: tuple[_TextChoice]
    object: Literal["chat.completion.chunk"] | None = None
    id: str | None = None
    usage: None = None
    error: None = None
    base_resp: None = None
    x_groq: None = None


TEXT_CHUNKS = msgspec.json.Decoder(threadsafe(_TextChunk))


class ChunkReader(BuildingReader):
    """Reads one stream."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        super().__init__(model, clock)
        self._calls = _StreamedCalls(self._builder)
        self._details = ReasoningDetails()
        self._thought: tuple[OpenThinking, str | None] | None = None
        self._finish: str | None = None
        self._counted: Counted | None = None
        self._response_id: str | None = None
        self._done = False

    @property
    @override
    def has_end(self) -> bool:
        """A finish reason came; or the closing mark behind a usage, as servers send that give no reason."""
        return self._finish is not None or (self._done and self._counted is not None)

    @property
    @override
    def is_over(self) -> bool:
        return self._done

    @property
    @override
    def after_end_s(self) -> float:
        return USAGE_FOLLOWS_S if self._counted is None else NOTHING_FOLLOWS_S

    @override
    def done(self) -> None:
        self._done = True

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
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

    @override
    def read_texts(self, events: Sequence[SseEvent]) -> bool:
        chunks = decoded(TEXT_CHUNKS, events)
        if not chunks or any(event.name for event in events):
            return False
        self._append_text("".join([chunk.choices[0].delta.content for chunk in chunks]))
        if self._response_id is None:
            self._response_id = next((chunk.id for chunk in chunks if chunk.id is not None), None)
        return True

    @override
    def read_whole(self, body: JsonObject) -> None:
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


class _StreamedCalls:
    """Assembler of an answer's tool calls from their pieces."""

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._by_index: dict[int, OpenCall] = {}
        self._last: OpenCall | None = None

    def read(self, delta: JsonObject) -> None:
        """Read a piece of a call: a new one, or more of an open one."""
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
        call = self._by_index.get(index) if isinstance(index, int) else self._last
        arguments = json.as_object(delta.get("function")).get("arguments")
        if call is not None and _is_new(call, arguments, call_id=call_id, name=name):
            call = None
        if call is None:
            if not call_id and not name and not arguments:
                return None
            call = self._builder.open_call(id=call_id, name=name)
        if call_id and not call.id:
            call.id = call_id
        if name:
            self._builder.name_call(call, name)
        if isinstance(index, int):
            self._by_index[index] = call
        self._last = call
        return call


def _is_new(call: OpenCall, arguments: JsonValue, *, call_id: str, name: str) -> bool:
    """Return whether a piece begins a second call: Copilot sends the index 0 for both, other servers send none."""
    if call_id and call.id:
        return call_id != call.id
    # Without ids, a name behind whole arguments can only begin another call: Gemini's ids are all "".
    if call_id or not name or not call.name or not call.pieces:
        return False
    goes_on = isinstance(arguments, str) and arguments.lstrip()[:1] not in ("", "{")
    if goes_on or not call.pieces[-1].rstrip().endswith("}"):
        return False
    return is_whole_object("".join(call.pieces))


class Counted(Value, frozen=True, kw_only=True):
    """Usage of an answer."""

    usage: Usage
    billed: float | None = None
    """US dollars, where the provider tells."""


def read_usage(usage: JsonObject) -> Counted | None:
    """Read the counts and the bill; None when there are none."""
    if "prompt_tokens" not in usage and "completion_tokens" not in usage:
        return None
    prompt = count(usage.get("prompt_tokens"))
    completion = count(usage.get("completion_tokens"))
    of_prompt = json.as_object(usage.get("prompt_tokens_details"))
    of_completion = json.as_object(usage.get("completion_tokens_details"))
    cached = _first(
        of_prompt.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("num_cached_tokens"),
    )
    written = count(of_prompt.get("cache_write_tokens"))
    reasoning = _first(of_completion.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    total = count(usage.get("total_tokens"))
    # xAI counts thoughts beside the completion, Gemini's gateways leave them out of it: there they are added.
    outside = reasoning > completion or (reasoning > 0 and total == prompt + completion + reasoning)
    tokens = Usage(
        # Azure has reported more cached tokens than the prompt had.
        input=max(0, prompt - cached - written),
        output=completion + reasoning if outside else completion,
        cache_read=min(cached, prompt),
        cache_write=written,
        reasoning=reasoning,
    )
    return Counted(usage=tokens, billed=billed(usage))


def _first(*values: JsonValue) -> int:
    return next((found for found in map(count, values) if found), 0)
