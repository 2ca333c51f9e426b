"""The lines that Ollama streams, read into one answer."""

from collections.abc import Mapping

from agent_core.kernel import Clock, JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.errors import failure_from_event
from agent_core.providers.http.stream import NOTHING_FOLLOWS_S
from agent_core.providers.messages.builder import MessageBuilder, OpenText, OpenThinking
from agent_core.providers.messages.pricing import priced
from agent_core.providers.messages.token_counts import count
from agent_core.providers.model import ModelInfo, StreamEvent, StreamFinished

STOPS: Mapping[str, StopReason] = {"stop": "stop", "length": "length"}


class LineReader:
    """Reads one stream; an answer in one piece is a stream of one line."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._builder = MessageBuilder(model)
        self._reason: str | None = None
        self._usage = Usage()
        self._over = False

    @property
    def has_end(self) -> bool:
        """Return whether the line came that says the answer is whole."""
        return self._over

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is expected."""
        return self._over

    @property
    def after_end_s(self) -> float:
        """How long to wait for what may come behind the end, in seconds."""
        return NOTHING_FOLLOWS_S

    def done(self) -> None:
        """Ignore the closing mark: this API has none, but some gateways send it."""

    def read(self, event: JsonObject, *, name: bytes) -> None:
        """Read one line."""
        if event.get("error") or name == b"error":
            raise failure_from_event(
                event, provider=self._model.provider, parts_came=not self._builder.is_empty
            )
        message = json.as_object(event.get("message"))
        self._think(_text(message.get("thinking")))
        self._append_text(_text(message.get("content")))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._call(json.as_object(call))
        if event.get("done") is True:
            self._end(event)

    def read_whole(self, body: JsonObject) -> None:
        """Read a complete, non-streamed answer."""
        self.read(body, name=b"")

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; they come with the last line."""
        return priced(self._usage, self._model.prices)

    def take(self) -> list[StreamEvent]:
        """Return the parts since the last time."""
        return self._builder.take()

    def answer(self) -> StreamFinished:
        """Return the whole answer.

        Raises:
            ProviderError: It ended for a reason that nobody knows.
        """
        return self._builder.finish(
            stop_reason=self._stop_reason(),
            raw_stop_reason=self._reason,
            usage=self.usage,
            response_id=None,
            at_ms=self._clock.now_ms(),
        )

    def _think(self, text: str) -> None:
        if not text:
            return
        block = self._builder.last
        if not isinstance(block, OpenThinking):
            block = self._builder.open_thinking()
        self._builder.grow(block, text)

    def _append_text(self, text: str) -> None:
        if not text:
            return
        block = self._builder.last
        if not isinstance(block, OpenText):
            block = self._builder.open_text()
        self._builder.grow(block, text)

    def _call(self, call: JsonObject) -> None:
        """Calls come whole, each in one line."""
        function = json.as_object(call.get("function"))
        opened = self._builder.open_call(id=_text(call.get("id")), name=_text(function.get("name")))
        arguments = function.get("arguments")
        if json.is_object(arguments):
            self._builder.grow(opened, json.encode(arguments).decode())
        else:
            self._builder.grow(opened, _text(arguments))

    def _end(self, event: JsonObject) -> None:
        self._over = True
        self._reason = _text(event.get("done_reason")) or None
        self._usage = Usage(
            input=count(event.get("prompt_eval_count")),
            output=count(event.get("eval_count")),
        )

    def _stop_reason(self) -> StopReason:
        raw = self._reason or "stop"
        if raw not in STOPS:
            # "load" and "unload": the model was moved, and nothing was asked of it.
            provider = self._model.provider
            message = f"{provider} ended the answer for the reason {raw!r}; try again"
            raise ProviderError(message, reason="server", provider=provider)
        stop = STOPS[raw]
        return "tool_use" if stop == "stop" and self._builder.has_calls else stop


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
