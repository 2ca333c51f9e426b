"""The lines that Ollama streams, read into one answer."""

from collections.abc import Mapping

from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import StopReason, Usage
from agent_core.providers.http.stream import BuildingReader
from agent_core.providers.messages.builder import OpenText, OpenThinking, count, priced
from agent_core.providers.model import ModelInfo, StreamFinished

STOPS: Mapping[str, StopReason] = {"stop": "stop", "length": "length"}


class LineReader(BuildingReader):
    """Reads one stream; an answer in one piece is a stream of one line."""

    def __init__(self, model: ModelInfo, clock: Clock) -> None:
        super().__init__(model, clock)
        self._reason: str | None = None
        self._usage = Usage()
        self._over = False

    @property
    @override
    def has_end(self) -> bool:
        return self._over

    @override
    def read(self, event: JsonObject, *, name: bytes) -> None:
        if event.get("error") or name == b"error":
            raise self._failure(event)
        message = json.as_object(event.get("message"))
        self._think(json.as_text(message.get("thinking")))
        self._append_text(json.as_text(message.get("content")))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._call(json.as_object(call))
        if event.get("done") is True:
            self._end(event)

    @property
    def usage(self) -> Usage:
        """Tokens counted so far; they come with the last line."""
        return priced(self._usage, self._model.prices)

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
        opened = self._builder.open_call(
            id=json.as_text(call.get("id")), name=json.as_text(function.get("name"))
        )
        arguments = function.get("arguments")
        if json.is_object(arguments):
            self._builder.grow(opened, json.encode(arguments).decode())
        else:
            self._builder.grow(opened, json.as_text(arguments))

    def _end(self, event: JsonObject) -> None:
        self._over = True
        self._reason = json.as_text(event.get("done_reason")) or None
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
