"""The chunks of Gemini, read into one answer; both of its servers send the same."""

from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.stream import USAGE_FOLLOWS_S, BuildingReader
from agent_core.providers.messages.builder import (
    MessageBuilder,
    OpenCall,
    OpenText,
    OpenThinking,
    count,
    priced,
)
from agent_core.providers.model import ModelInfo, StreamFinished
from agent_core.providers.wire.gemini.arguments import PartialArguments

REFUSALS = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
UNKNOWN_CALL = "UNEXPECTED_TOOL_CALL"
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"


class GeminiReader(BuildingReader):
    """Reads one stream. Its end is a finish reason; nothing but the end of the body comes after it."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        super().__init__(model, clock)
        self._calls = _GeminiCalls(self._builder, model)
        self._finish: str | None = None
        self._why: str = ""
        self._usage = Usage()
        self._response_id: str | None = None

    @property
    @override
    def has_end(self) -> bool:
        return self._finish is not None

    @property
    @override
    def is_over(self) -> bool:
        """Never: counts, or more words with another finish reason, may follow until the stream ends."""
        return False

    @property
    @override
    def after_end_s(self) -> float:
        return USAGE_FOLLOWS_S

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one chunk.

        Raises:
            ProviderError: The chunk reports an error or a blocked prompt.
        """
        if event.get("error") or name == b"error":
            raise self._failure(event)
        self._count(json.as_object(event.get("usageMetadata")))
        self._check_prompt(json.as_object(event.get("promptFeedback")))
        candidates = event.get("candidates")
        for value in candidates if isinstance(candidates, list) else ():
            candidate = json.as_object(value)
            # Only the first is the answer.
            if not candidate.get("index"):
                self._read_candidate(candidate)
        response_id = event.get("responseId")
        if isinstance(response_id, str) and response_id:
            self._response_id = response_id

    @property
    def usage(self) -> Usage:
        """Tokens counted so far, by the newest chunk."""
        return priced(self._usage, self._model.prices)

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: The provider refused, or gave a reason that is no good end.
        """
        self._calls.close()
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._finish,
            usage=self.usage,
            response_id=self._response_id,
            at_ms=self._clock.now_ms(),
        )

    def _check_prompt(self, feedback: JsonObject) -> None:
        blocked = feedback.get("blockReason")
        if isinstance(blocked, str) and blocked:
            why = feedback.get("blockReasonMessage")
            raise self._refused(f"{blocked}: {why}" if isinstance(why, str) and why else blocked)

    def _read_candidate(self, candidate: JsonObject) -> None:
        parts = json.as_object(candidate.get("content")).get("parts")
        for part in parts if isinstance(parts, list) else ():
            self._read_part(json.as_object(part))
        finish = candidate.get("finishReason")
        if isinstance(finish, str) and finish and finish != UNSPECIFIED:
            self._finish = finish
        why = candidate.get("finishMessage")
        if isinstance(why, str):
            self._why = why

    def _read_part(self, part: JsonObject) -> None:
        signature = part.get("thoughtSignature")
        signed = signature if isinstance(signature, str) and signature else None
        call = part.get("functionCall")
        text = part.get("text")
        if json.is_object(call):
            self._calls.read(call, signature=signed)
        elif isinstance(text, str):
            self._append_text(text, is_thought=part.get("thought") is True, signature=signed)

    def _append_text(self, text: str, *, is_thought: bool, signature: str | None) -> None:
        """Append to the open block; a signed part gets a block of its own, because its signature goes back with it."""
        if not text and signature is None:
            return
        kind = OpenThinking if is_thought else OpenText
        block = self._builder.last
        if not isinstance(block, kind) or block.signature is not None or signature is not None:
            block = self._builder.open_thinking() if is_thought else self._builder.open_text()
        block.signature = signature
        self._builder.grow(block, text)

    def _count(self, counts: JsonObject) -> None:
        """Store the newest token counts; while arguments are streamed there are objects without any."""
        if _number(counts, "totalTokenCount") or _number(counts, "promptTokenCount"):
            cached = _number(counts, "cachedContentTokenCount")
            prompt = _number(counts, "promptTokenCount")
            thoughts = _number(counts, "thoughtsTokenCount")
            self._usage = Usage(
                input=max(0, prompt - cached) + _number(counts, "toolUsePromptTokenCount"),
                output=_number(counts, "candidatesTokenCount") + thoughts,
                cache_read=min(cached, prompt),
                reasoning=thoughts,
            )

    def _stop_reason(self) -> StopReason:
        raw = self._finish
        called = self._builder.has_calls
        if raw == "MAX_TOKENS":
            return "length"
        # A call of a tool that was not offered is whole too: its answer teaches the model.
        if raw in {None, "STOP"} or (raw == UNKNOWN_CALL and called):
            return "tool_use" if called else "stop"
        why = f"{raw}: {self._why}" if self._why else str(raw)
        if raw in REFUSALS:
            raise self._refused(why)
        provider = self._model.provider
        message = f"{provider} ended the answer badly ({why}); try again"
        raise ProviderError(message, reason="server", provider=provider)

    def _refused(self, why: str) -> ProviderError:
        provider = self._model.provider
        message = f"{provider} refused to answer ({why})"
        return ProviderError(message, reason="refused", provider=provider)


def _number(counts: JsonObject, key: str) -> int:
    return count(counts.get(key))


class _GeminiCalls:
    """Opens calls and ends them."""

    def __init__(self, builder: MessageBuilder, model: ModelInfo) -> None:
        self._builder = builder
        self._model = model
        self._open: tuple[OpenCall, PartialArguments] | None = None

    def read(self, call: JsonObject, *, signature: str | None) -> None:
        """Read a call, or more of the open one: that has no name, and an empty object ends it."""
        name = call.get("name")
        leaves = call.get("partialArgs")
        goes_on = call.get("willContinue") is True
        if isinstance(name, str) and name:
            self.close()
            self._begin(call, name, goes_on=goes_on or bool(leaves), signature=signature)
        elif self._open is None:
            if call.get("args") or leaves:
                raise self._broken("arguments of no call")
            return
        elif signature is not None:
            self._open[0].signature = signature
        for leaf in leaves if isinstance(leaves, list) else ():
            self._add(json.as_object(leaf))
        if not goes_on:
            self._end()

    def close(self) -> None:
        """End what was never ended: its arguments are not whole, and are written so that nobody takes them for it."""
        if self._open is not None:
            call, arguments = self._open
            self._open = None
            begun = json.encode(self._checked(arguments)).decode()
            self._builder.grow(call, begun.removesuffix("}") or begun)

    def _begin(self, call: JsonObject, name: str, *, goes_on: bool, signature: str | None) -> None:
        call_id = call.get("id")
        opened = self._builder.open_call(id=call_id if isinstance(call_id, str) else "", name=name)
        opened.signature = signature
        if goes_on:
            self._open = opened, PartialArguments()
            return
        self._builder.grow(opened, json.encode(json.as_object(call.get("args"))).decode())

    def _add(self, leaf: JsonObject) -> None:
        if self._open is None:
            return
        try:
            self._open[1].add(leaf)
        except ValueError as error:
            raise self._unfitting(error) from None

    def _end(self) -> None:
        if self._open is None:
            return
        call, arguments = self._open
        if not arguments.is_whole:
            self.close()
            return
        self._open = None
        self._builder.grow(call, json.encode(self._checked(arguments)).decode())

    def _checked(self, arguments: PartialArguments) -> JsonObject:
        try:
            return arguments.so_far()
        except ValueError as error:
            raise self._unfitting(error) from None

    def _unfitting(self, error: ValueError) -> ProviderError:
        what = f"arguments that do not fit together ({error})"
        return self._broken(what)

    def _broken(self, what: str) -> ProviderError:
        message = f"{self._model.ref} sent {what}; try again"
        return ProviderError(message, reason="protocol", provider=self._model.provider)
