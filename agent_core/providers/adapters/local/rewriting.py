"""The runtime's stream with an answer in JSON, as the stream of a server that knows tools. Pure."""

from collections.abc import Iterator

import pydantic_core

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.providers.adapters.local.grammar import ARGUMENTS, SAY, TOOL

DONE = "[DONE]"
CLOSING = "} \t\r\n"
ID_LENGTH = 24
LOCAL_ID = "local"


class Rewriter:
    """Takes the chunks of one answer and gives those to send on: words and arguments as they grow."""

    def __init__(self) -> None:
        self._text = ""
        self._said = 0
        self._sent: int | None = None
        """How much of the arguments' text went out; None: there is no call yet."""
        self._ended = False

    def chunks(self, chunk: JsonObject) -> Iterator[JsonObject]:
        """Give what to send for a chunk of the runtime."""
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            yield chunk
            return
        choice = json.as_object(choices[0])
        words = json.as_object(choice.get("delta")).get("content")
        reason = choice.get("finish_reason")
        self._text += words if isinstance(words, str) else ""
        if new := self._new_words():
            yield _with(chunk, {"content": new}, None)
        yield from self._call(chunk, whole=reason == "stop")
        if isinstance(reason, str) and not self._ended:
            self._ended = True
            is_call = self._sent is not None and reason == "stop"
            yield _with(chunk, {}, "tool_calls" if is_call else reason)

    def _new_words(self) -> str:
        found = _partial(self._text).get(SAY)
        if not isinstance(found, str):
            return ""
        new = found[self._said :]
        self._said = len(found)
        return new

    def _call(self, chunk: JsonObject, *, whole: bool) -> Iterator[JsonObject]:
        head, key, rest = self._text.partition(f'"{ARGUMENTS}"')
        name = _partial(head).get(TOOL)
        if not key or not isinstance(name, str):
            return
        if self._sent is None:
            self._sent = 0
            function: JsonValue = {"name": name, "arguments": ""}
            identity = f"call_{chunk.get('id', LOCAL_ID)}"[-ID_LENGTH:]
            yield _call_delta(chunk, {"id": identity, "type": "function", "function": function})
        text = rest.partition(":")[2].lstrip()
        # The last brace is that of the answer, not of the arguments: braces wait until something follows them.
        ready = text.rstrip().removesuffix("}").rstrip() if whole else text.rstrip(CLOSING)
        if new := ready[self._sent :]:
            self._sent = len(ready)
            yield _call_delta(chunk, {"function": {"arguments": new}})


def _call_delta(chunk: JsonObject, call: JsonObject) -> JsonObject:
    return _with(chunk, {"tool_calls": [{"index": 0, **call}]}, None)


def _with(chunk: JsonObject, delta: JsonObject, reason: str | None) -> JsonObject:
    return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _partial(text: str) -> JsonObject:
    """Read JSON that may still grow; the window is so small that reading it anew costs nothing."""
    try:
        value: JsonValue = pydantic_core.from_json(text, allow_partial="trailing-strings")  # pyright: ignore[reportAny] - a parser gives Any
    except ValueError:
        return {}
    return json.as_object(value)
