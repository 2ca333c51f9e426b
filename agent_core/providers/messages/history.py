"""The messages of a request: normalised for the model that reads them, and encoded once."""

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from operator import is_

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message, Text, ToolCall
from agent_core.providers.messages.request_options import (
    InputSize,
    TurnMessage,
    measured,
    normalise_messages,
)
from agent_core.providers.model import ModelInfo, ModelRequest

KEPT_BYTES = 8 * 1024 * 1024
"""Largest size of what is kept for one model of a session; the messages behind it are encoded for each request."""


class SplitTurns(Value, frozen=True, kw_only=True):
    """The messages of a request in the form of its API."""

    encoded: bytes
    """The first messages as JSON, separated by commas; empty: none."""
    rest: Sequence[JsonValue]
    """The other messages."""
    size: InputSize
    """Size of all."""


class SplitBody(Value, frozen=True, kw_only=True):
    """The JSON body of a request, one of whose lists lacks items that are encoded already."""

    fields: JsonObject
    name: str
    """The field with the list."""
    at: int
    """Place of the encoded items in the list."""
    encoded: bytes

    def encode(self) -> bytes:
        """Return the whole body as JSON."""
        value = self.fields.get(self.name)
        if not self.encoded or not isinstance(value, list):
            return json.encode(self.fields)
        place = list(self.fields).index(self.name)
        before = json.encode(dict(islice(self.fields.items(), place)))[1:-1]
        after = json.encode(dict(islice(self.fields.items(), place + 1, None)))[1:-1]
        first, last = _items(value[: self.at]), _items(value[self.at :])
        # One join: of a long history each copy takes as long as all the rest.
        return b"".join(
            (
                b"{",
                *((before, b",") if before else ()),
                json.encode(self.name),
                b":[",
                *((first, b",") if first else ()),
                self.encoded,
                *((b",", last) if last else ()),
                b"]",
                *((b",", after) if after else ()),
                b"}",
            )
        )


class _Kept(Value, frozen=True, kw_only=True):
    """Messages that were encoded, up to an answer that an API is shown, or none."""

    messages: tuple[Message, ...] = ()
    without_thoughts: bool = False
    call_ids: frozenset[str] = frozenset()
    encoded: bytes = b""
    size: InputSize = InputSize()

    def begins(self, request: ModelRequest) -> bool:
        """Return whether a request begins with these messages, unchanged, and an answer follows them again."""
        messages, count = request.messages, len(self.messages)
        if not count:
            return True
        if self.without_thoughts != request.without_thoughts or count >= len(messages):
            return False
        if not _is_shown_answer(messages[count]):
            return False
        return all(map(is_, self.messages, messages)) or all(map(_is_same, self.messages, messages))


class EncodedHistory:
    """The encoded messages of the last request to one model, up to its last answer.

    The next request of the session begins with the same messages, unless the history was compacted, edited or left for
    another branch: then all are encoded again. One model of one API uses it, with the same functions each time.
    """

    def __init__(self) -> None:
        self._kept = _Kept()
        self._full_at = sys.maxsize
        """Messages of the request that was too large to keep more of it."""

    def split(
        self,
        request: ModelRequest,
        model: ModelInfo,
        *,
        call_id: Callable[[str], str],
        convert: Callable[[Sequence[TurnMessage]], Sequence[JsonValue]],
    ) -> SplitTurns:
        """Return the messages of a request, encoded up to its last answer that an API is shown.

        Args:
            request: The request.
            model: The model that is asked.
            call_id: As for `normalise_messages`.
            convert: Returns turns in the form of the API. Converting the turns up to an answer and those from it on
                must give what converting all of them gives.
        """
        kept = self._kept if self._kept.begins(request) else _Kept()
        if kept is self._kept and len(request.messages) >= self._full_at:
            return _split(request, model, kept, call_id=call_id, convert=convert)
        end = _last_shown_answer(request.messages, after=len(kept.messages))
        more = _converted(request, model, kept, end, call_id=call_id, convert=convert)
        encoded = b",".join(filter(None, (kept.encoded, _items(more.items))))
        self._full_at = len(request.messages)
        if len(encoded) <= KEPT_BYTES:
            self._full_at = sys.maxsize
            kept = _Kept(
                messages=request.messages[:end],
                without_thoughts=request.without_thoughts,
                call_ids=more.call_ids,
                encoded=encoded,
                size=more.size,
            )
        self._kept = kept
        return _split(request, model, kept, call_id=call_id, convert=convert)


def split_turns(
    request: ModelRequest,
    model: ModelInfo,
    history: EncodedHistory | None,
    *,
    call_id: Callable[[str], str],
    convert: Callable[[Sequence[TurnMessage]], Sequence[JsonValue]],
) -> SplitTurns:
    """Return the messages of a request; without a history nothing of them is encoded."""
    if history is None:
        return _split(request, model, _Kept(), call_id=call_id, convert=convert)
    return history.split(request, model, call_id=call_id, convert=convert)


class _Converted(Value, frozen=True, kw_only=True):
    items: Sequence[JsonValue]
    call_ids: frozenset[str]
    size: InputSize
    """Size of these and all messages before them."""


def _converted(
    request: ModelRequest,
    model: ModelInfo,
    kept: _Kept,
    end: int,
    *,
    call_id: Callable[[str], str],
    convert: Callable[[Sequence[TurnMessage]], Sequence[JsonValue]],
) -> _Converted:
    """Convert the messages that follow the kept ones, up to `end`."""
    call_ids = set(kept.call_ids)
    turns = normalise_messages(
        request.messages[len(kept.messages) : end],
        model,
        call_id=call_id,
        without_thoughts=request.without_thoughts,
        taken_ids=call_ids,
    )
    size = measured(turns)
    return _Converted(
        items=convert(turns),
        call_ids=frozenset(call_ids),
        size=InputSize(chars=kept.size.chars + size.chars, images=kept.size.images + size.images),
    )


def _split(
    request: ModelRequest,
    model: ModelInfo,
    kept: _Kept,
    *,
    call_id: Callable[[str], str],
    convert: Callable[[Sequence[TurnMessage]], Sequence[JsonValue]],
) -> SplitTurns:
    end = len(request.messages)
    rest = _converted(request, model, kept, end, call_id=call_id, convert=convert)
    return SplitTurns(encoded=kept.encoded, rest=rest.items, size=rest.size)


def _last_shown_answer(messages: Sequence[Message], *, after: int) -> int:
    """Return the place of the last answer that every API is shown as a message of its own; `after` if none follows.

    Everything before such an answer is settled: later messages are merged with nothing there.
    """
    for place in range(len(messages) - 1, after, -1):
        if _is_shown_answer(messages[place]):
            return place
    return after


def _is_shown_answer(message: Message) -> bool:
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
        return False
    return any(
        isinstance(part, ToolCall) or (isinstance(part, Text) and bool(part.text.strip()))
        for part in message.content
    )


def _is_same(before: Message, now: Message) -> bool:
    """Compare messages that may have been made anew. Answers may not: arguments of calls equal others (1 and true)."""
    return before is now or (not isinstance(now, AssistantMessage) and before == now)


def _items(items: Sequence[JsonValue]) -> bytes:
    """Return items as in a JSON list, without its brackets."""
    return json.encode(items)[1:-1]
