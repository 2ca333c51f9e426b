"""Redaction of secrets in the entries and events of a session; events also while they stream."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import Event, MessageEnded, ToolInputDelta, ToolStarted
from agent_core.events.feed import StreamKey, stream_of, streams_ended_by
from agent_core.events.union import Delta
from agent_core.events.values import PermissionRequested, QuestionRequested
from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.redaction.redactor import HeldOnly, RedactedStream, Redactor, TextRedactor
from agent_core.messages import File, Image, Thinking

if TYPE_CHECKING:
    from agent_core.session.arguments_preview import ArgumentsPreview

Redactable = TypeVar("Redactable")

NAMES: Final = frozenset(
    {
        "id", "parent", "run", "turn", "item", "call", "call_id", "entry", "first_kept", "target", "from_id",
        "message_id", "queue_id", "session", "response_id", "request", "model", "provider", "api", "mime",
        "signature", "role", "status", "stop_reason", "custom_type",
    }
)  # fmt: skip
"""Fields that hold no words but ids, names and what only a provider can read."""


_PLAIN: Final = frozenset({type(None), bool, int, float, Image, File, bytes})
"""Types of values that hold no words; every event is walked, so they are recognised without a call."""


def redacted(value: Redactable, cleaner: TextRedactor) -> Redactable:
    """Return a frozen value with the secrets in all its texts redacted; a value without secrets is the same object."""
    return cast("Redactable", _redacted(value, cleaner))  # the walk keeps every type


def long_texts(value: object) -> list[str]:
    """Return all texts in a value, for looking through the long ones beforehand."""
    texts: list[str] = []
    left = [value]
    while left:
        part = left.pop()
        kind = type(part)
        if isinstance(part, str):
            texts.append(part)
        elif kind in _PLAIN:
            continue
        elif isinstance(part, Struct):
            for name in _worded(type(part)):
                field: object = getattr(part, name)  # pyright: ignore[reportAny] - of any type
                if type(field) not in _PLAIN:
                    left.append(field)
        elif isinstance(part, dict | Mapping):
            left.extend(
                cast("Mapping[object, object]", part).values()
            )  # any mapping is one of objects
        elif isinstance(part, tuple | list | Sequence):
            left.extend(cast("Sequence[object]", part))  # any sequence is one of objects
    return texts


def _redacted(value: object, cleaner: TextRedactor) -> object:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return cleaner.text(value)
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)  # any tuple is one of objects
        cleaned: list[object] = []
        same = True
        for item in items:
            after = _redacted(item, cleaner)
            same = same and after is item
            cleaned.append(after)
        return items if same else tuple(cleaned)
    if isinstance(value, Struct):
        return _redacted_fields(value, cleaner)
    if isinstance(value, dict | list | Mapping):
        return cleaner.json(cast("JsonValue", value))  # mappings and lists in values are JSON
    return value


def _redacted_fields(value: Struct, cleaner: TextRedactor) -> object:
    changed: dict[str, object] = {}
    for name in _worded(type(value)):
        before: object = getattr(value, name)  # pyright: ignore[reportAny] - of any type
        if type(before) in _PLAIN or before == ():
            continue
        after = _redacted(before, cleaner)
        if after is not before and after != before:
            changed[name] = after
    if not changed:
        return value
    if isinstance(value, Thinking):
        changed["signature"] = None  # it signs the words as they were
    return replace(value, **changed)


@cache
def _worded(kind: type[Struct]) -> tuple[str, ...]:
    """Name the fields of a struct that may hold words."""
    return tuple(name for name in kind.__struct_fields__ if name not in NAMES)


class EventRedaction:
    """Redaction of secrets in a sequence of events; the deltas of one item are scanned as one text."""

    def __init__(self, redactor: Redactor, clock: Clock) -> None:
        self._redactor = redactor
        self._clock = clock
        self._streams: dict[StreamKey, tuple[RedactedStream, Delta]] = {}
        self._arguments: dict[StreamKey, ArgumentsPreview] = {}
        """Of calls that do not run yet."""

    def clean(self, event: Event, *, partials: bool = False) -> Iterable[Event]:
        """Return what may be told now: perhaps nothing yet, perhaps first what was kept back of the same item.

        Args:
            event: The event as it happened.
            partials: Add the arguments so far to deltas of arguments, at intervals and at their end.
        """
        if isinstance(event, Delta):
            return self._delta(event, partials=partials)
        rest = [
            delta
            for key in (streams_ended_by(event) if self._streams else ())
            for delta in self._rest(key)
        ]
        if partials and self._arguments and isinstance(event, ToolStarted | MessageEnded):
            # The arguments of the calls before are complete.
            rest.extend(self._last_partials())
        if isinstance(event, PermissionRequested):
            # Whoever answers must see what will run; what looks like a stranger's secret is part of that.
            cleaner = HeldOnly(self._redactor)
            # The field is called as an id is elsewhere, and would be passed over.
            return (*rest, replace(event, request=redacted(event.request, cleaner)))
        if isinstance(event, QuestionRequested):
            event = replace(event, request=redacted(event.request, self._redactor))
        return (*rest, redacted(event, self._redactor))

    def _delta(self, event: Delta, *, partials: bool) -> Iterable[Event]:
        key = stream_of(event)
        stream = self._streams[key][0] if key in self._streams else self._redactor.stream()
        self._streams[key] = (stream, event)
        text = stream.push(event.text)
        if isinstance(event, ToolInputDelta):
            partial = self._partial(key, event.text, is_wanted=partials)
            if partial is not None:
                return (replace(event, text=text, partial=partial),)
        if text == event.text:
            return (event,)
        return (replace(event, text=text),) if text else ()

    def _partial(self, key: StreamKey, text: str, *, is_wanted: bool) -> JsonObject | None:
        arguments = self._arguments.get(key)
        if arguments is None:
            from agent_core.session.arguments_preview import ArgumentsPreview  # noqa: PLC0415 - at first use

            arguments = self._arguments[key] = ArgumentsPreview(self._redactor, self._clock)
        # Also while nobody asks: a reader that comes later needs them from their beginning.
        arguments.add(text)
        return arguments.due() if is_wanted else None

    def _last_partials(self) -> Iterator[Event]:
        for key, arguments in self._arguments.items():
            _, last = self._streams[key]
            if isinstance(last, ToolInputDelta) and (partial := arguments.rest()) is not None:
                yield replace(last, text="", partial=partial)

    def _rest(self, key: StreamKey) -> Iterator[Event]:
        _ = self._arguments.pop(key, None)
        pending = self._streams.pop(key, None)
        if pending is not None and (text := pending[0].finish()):
            yield replace(pending[1], text=text)
