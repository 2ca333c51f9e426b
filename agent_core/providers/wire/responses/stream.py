"""The events of the Responses API, read into one answer."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import threadsafe
from agent_core.messages import Cost, StopReason, Usage
from agent_core.providers.http.stream import BuildingReader, SseEvent, decoded
from agent_core.providers.messages.builder import billed, count, priced
from agent_core.providers.model import ModelInfo, StreamFinished
from agent_core.providers.wire.responses.items import ResponseItems

ERRORS = ("error", "response.error")
ENDS: Mapping[str, str] = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The status that an end stands for when it names none."""
WHOLE = ("completed", "incomplete")
FAULTY_INPUT = ("invalid_", "image_", "unsupported_", "empty_", "failed_to_download_")
"""How the codes begin that blame what was sent; the rest of the API's codes may pass by waiting."""

REFUSALS = ("content_filter", "content_policy_violation", "image_content_policy_violation")

TIERS: Mapping[str, float] = {"flex": 0.5, "priority": 2.0, "fast": 2.0}
"""Price factor of each service tier, relative to the list price."""
DEARER = "gpt-5.5"
DEARER_FACTOR = 2.5


class _TextDelta(Struct, frozen=True, tag_field="type", tag="response.output_text.delta"):
    """An event that adds text to an item."""

    item_id: str
    output_index: int
    delta: str
    item: None = None
    base_resp: None = None


TEXT_DELTAS = msgspec.json.Decoder(threadsafe(_TextDelta))


class ResponseReader(BuildingReader):
    """Reads one stream, or one whole answer."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        super().__init__(model, clock)
        self._items = ResponseItems(self._builder)
        self._ended: JsonObject | None = None
        self._counted: JsonObject = {}
        """The response that came with counts."""
        self._status = ""
        self._done = False
        items = self._items
        self._readers: Mapping[str, Callable[[JsonObject], None]] = {
            "response.created": self._begin,
            "response.output_item.added": items.open,
            "response.output_item.done": items.close,
            "response.output_text.delta": items.append_text,
            "response.refusal.delta": items.append_text,
            "response.reasoning_summary_text.delta": items.think,
            "response.reasoning_text.delta": items.think,
            "response.function_call_arguments.delta": items.argue,
            "response.function_call_arguments.done": items.argued,
            "response.custom_tool_call_input.done": items.argued,
        }

    @property
    @override
    def has_end(self) -> bool:
        return self._ended is not None

    @property
    @override
    def is_over(self) -> bool:
        return self._done

    @override
    def done(self) -> None:
        """Record the closing mark, which OpenRouter sends after the end."""
        self._done = True

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
        given = event.get("type")
        kind = given if isinstance(given, str) else name.decode("ascii", "replace")
        reader = self._readers.get(kind)
        if reader is not None:
            reader(event)
        elif kind in ENDS:
            self._end(json.as_object(event.get("response")), usual=ENDS[kind])
        elif kind in ERRORS or event.get("error"):
            raise self._failure(event)

    @override
    def read_texts(self, events: Sequence[SseEvent]) -> bool:
        deltas = decoded(TEXT_DELTAS, events)
        if not deltas:
            return False
        place = deltas[0].item_id, deltas[0].output_index
        if any((delta.item_id, delta.output_index) != place for delta in deltas):
            return False
        text = "".join([delta.delta for delta in deltas])
        self._items.append_text({"item_id": place[0], "output_index": place[1], "delta": text})
        return True

    @override
    def read_whole(self, body: JsonObject) -> None:
        if body.get("error"):
            raise self._failure(body)
        output = body.get("output")
        if isinstance(output, list):
            status = body.get("status")
            self._end(body, usual=status if isinstance(status, str) else "completed")

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; they come with the end, also with one that is a failure."""
        usage = _responses_usage(json.as_object(self._counted.get("usage")))
        return _responses_cost(usage, self._counted, self._model)

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: The provider refused, or broke off in a call.
        """
        response = self._ended or {}
        response_id = response.get("id")
        stop, raw = self._stop(response)
        return self._builder.finish(
            stop_reason=stop,
            raw_stop_reason=raw,
            usage=self.usage,
            response_id=response_id if isinstance(response_id, str) else None,
            at_ms=self._clock.now_ms(),
        )

    def _begin(self, _event: JsonObject) -> None:
        """Begin a response; recordings hold several in one stream, as relays could."""
        self._ended = None
        self._items.begin()

    def _end(self, response: JsonObject, *, usual: str) -> None:
        status = response.get("status")
        self._status = status if isinstance(status, str) else usual
        self._counted = response
        if self._status not in WHOLE:
            raise self._failure(response)
        self._items.complete(response.get("output"))
        self._ended = response

    @override
    def _failure(self, event: JsonObject) -> ProviderError:
        inner = event.get("error")
        error = json.as_object(inner) if json.is_object(inner) else event
        code = error.get("code")
        if isinstance(code, str) and code.startswith(FAULTY_INPUT) and not error.get("status"):
            event = {"error": {**error, "type": "invalid_request_error"}}
        elif "output" in event and not inner:
            # A failed response that does not say why; its whole text would tell nobody more.
            event = {
                "error": {"message": f"the response is {self._status}", "code": "server_error"}
            }
        failure = super()._failure(event)
        if code in REFUSALS:
            failure.reason = "refused"
        return failure

    def _stop(self, response: JsonObject) -> tuple[StopReason, str]:
        if self._status == "incomplete":
            return self._cut_short(response)
        if self._items.has_unfinished_call:
            message = f"{self._model.ref} ended its answer in the middle of a tool call; try again"
            raise ProviderError(message, reason="protocol", provider=self._model.provider)
        return ("tool_use" if self._builder.has_calls else "stop"), self._status

    def _cut_short(self, response: JsonObject) -> tuple[StopReason, str]:
        reason = json.as_object(response.get("incomplete_details")).get("reason")
        provider = self._model.provider
        if reason == "max_output_tokens":
            return "length", "max_output_tokens"
        if reason == "content_filter":
            message = f"{provider} refused to answer ({reason})"
            raise ProviderError(message, reason="refused", provider=provider)
        message = f"{provider} broke off the answer for the unknown reason {reason!r}; try again"
        raise ProviderError(message, reason="server", provider=provider)


def _responses_usage(usage: JsonObject) -> Usage:
    """Read the counts: cached tokens are part of the input, thoughts part of the output."""
    read = count(usage.get("input_tokens"))
    of_input = json.as_object(usage.get("input_tokens_details"))
    # Some gateways have reported more cached tokens than there was input.
    cached = min(count(of_input.get("cached_tokens")), read)
    written = min(count(of_input.get("cache_write_tokens")), read - cached)
    of_output = json.as_object(usage.get("output_tokens_details"))
    return Usage(
        input=read - cached - written,
        output=count(usage.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=count(of_output.get("reasoning_tokens")),
    )


def _responses_cost(usage: Usage, response: JsonObject, model: ModelInfo) -> Usage:
    """Return the counts with their cost: the billed amount, else the list price for the tier of the response."""
    billed_usd = billed(json.as_object(response.get("usage")))
    listed = priced(usage, model.prices, billed=billed_usd)
    factor = _factor(response.get("service_tier"), model)
    cost = listed.cost
    if billed_usd is not None or cost is None or factor == 1:
        return listed
    scaled = Cost(
        input=cost.input * factor,
        output=cost.output * factor,
        cache_read=cost.cache_read * factor,
        cache_write=cost.cache_write * factor,
    )
    return replace(listed, cost=scaled)


def _factor(tier: JsonValue, model: ModelInfo) -> float:
    factor = TIERS.get(tier, 1.0) if isinstance(tier, str) else 1.0
    return DEARER_FACTOR if factor > 1 and model.id.startswith(DEARER) else factor
