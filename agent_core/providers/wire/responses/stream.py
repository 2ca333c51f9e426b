"""The events of the Responses API, read into one answer."""

from collections.abc import Callable, Mapping

from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.errors import failure_from_event
from agent_core.providers.http.stream import NOTHING_FOLLOWS_S
from agent_core.providers.messages.builder import MessageBuilder
from agent_core.providers.model import ModelInfo, StreamEvent, StreamFinished
from agent_core.providers.wire.responses.items import ResponseItems
from agent_core.providers.wire.responses.usage import responses_cost, responses_usage

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


class ResponseReader:
    """Reads one stream, or one whole answer."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._builder = MessageBuilder(model)
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
    def has_end(self) -> bool:
        """Return whether the event came that says the answer is whole."""
        return self._ended is not None

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is expected."""
        return self._done

    @property
    def after_end_s(self) -> float:
        """How long to wait for what may come behind the end, in seconds."""
        return NOTHING_FOLLOWS_S

    def done(self) -> None:
        """Record the closing mark, which OpenRouter sends after the end."""
        self._done = True

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one event."""
        given = event.get("type")
        kind = given if isinstance(given, str) else name.decode("ascii", "replace")
        reader = self._readers.get(kind)
        if reader is not None:
            reader(event)
        elif kind in ENDS:
            self._end(json.as_object(event.get("response")), usual=ENDS[kind])
        elif kind in ERRORS or event.get("error"):
            raise self._failure(event)

    def read_whole(self, body: JsonObject) -> None:
        """Read a complete, non-streamed answer."""
        if body.get("error"):
            raise self._failure(body)
        output = body.get("output")
        if isinstance(output, list):
            status = body.get("status")
            self._end(body, usual=status if isinstance(status, str) else "completed")

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; they come with the end, also with one that is a failure."""
        usage = responses_usage(json.as_object(self._counted.get("usage")))
        return responses_cost(usage, self._counted, self._model)

    def take(self) -> list[StreamEvent]:
        """Return the parts since the last time."""
        return self._builder.take()

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
        failure = failure_from_event(
            event, provider=self._model.provider, parts_came=not self._builder.is_empty
        )
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
