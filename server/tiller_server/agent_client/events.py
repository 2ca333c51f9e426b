"""Reads events of the wire back into the values that a terminal shows."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, TypeVar, cast, get_args, get_type_hints

import msgspec
from msgspec.structs import fields

from agent_core.events import (
    BackgroundEnded,
    BackgroundListening,
    BackgroundStarted,
    BashEnded,
    BashOutput,
    BashStarted,
    ChangesUpdated,
    CommandSubject,
    CompactionEnded,
    CompactionStarted,
    ErrorRaised,
    EventEnvelope,
    ExtensionError,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    Notice,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
    QueueChanged,
    QueueItem,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    ServerSubject,
    SessionConfigured,
    SessionTitle,
    SessionUsage,
    TargetSubject,
    TaskCreated,
    TaskEnded,
    TaskUpdated,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    TrustSubject,
    TurnEnded,
    TurnStarted,
    UiEditorText,
    UiNotify,
    UiStatus,
    UiTitle,
    UiWidget,
)
from agent_core.events.codec import STOP_REASONS, event_name
from agent_core.events.values import TaggedEvent
from agent_core.kernel import JsonObject, JsonValue, parse_rfc3339
from agent_core.kernel.json import as_object, is_object
from agent_core.kernel.values import threadsafe
from tiller_server.lsp.documents.uris import path_of

SHOWN: Final[tuple[type[TaggedEvent], ...]] = (
    BackgroundEnded, BackgroundListening, BackgroundStarted, BashEnded, BashOutput, BashStarted, ChangesUpdated,
    CompactionEnded, CompactionStarted, ErrorRaised, ExtensionError, MessageDelta, MessageEnded, MessageStarted, Notice,
    PermissionRequested, PermissionResolved, QuestionRequested, QuestionResolved, QueueChanged, RetryEnded, RetryStarted,
    RunEnded, RunStarted, SessionConfigured, SessionTitle, SessionUsage, TaskCreated, TaskEnded, TaskUpdated, ThoughtDelta,
    ThoughtEnded, ThoughtStarted, ToolEnded, ToolInputDelta, ToolOutputDelta, ToolRunning, ToolStarted, TurnEnded, TurnStarted,
    UiEditorText, UiNotify, UiStatus, UiTitle, UiWidget,
)  # fmt: skip
"""Events that a front end shows or follows; any other is left out."""
TIMES: Final[Mapping[str, str]] = {"at": "atMs", "since": "sinceMs", "expires": "expiresMs"}
"""Times of the wire, and the fields that hold them."""
PLACES: Final[Mapping[str, str]] = {
    "uri": "path",
    "cwd": "cwd",
    "folder": "folder",
    "source": "source",
}
"""URIs of the subject of a request, and the fields that hold them as paths."""
OPAQUE: Final = frozenset({"input", "partial", "details", "view"})
"""Fields that hold any JSON."""
REASONS: Final[Mapping[str, str]] = {wire: reason for reason, wire in STOP_REASONS.items()}
SUBJECTS: Final[Mapping[str, type[CommandSubject | TrustSubject | ServerSubject]]] = {
    "command": CommandSubject, "trust": TrustSubject, "server": ServerSubject
}  # fmt: skip
"""Subjects of requests by their type; any other type is a target."""

T = TypeVar("T", bound=msgspec.Struct)


def event_of(wire: JsonObject) -> EventEnvelope | None:
    """Return an event of the wire; None: no terminal shows it, or it cannot be read, as one of another version.

    The parts of a cost are not on the wire: all of it counts as output.
    """
    shape = _shapes().get(str(wire.get("type")))
    if shape is None:
        return None
    try:
        return EventEnvelope(
            seq=msgspec.convert(wire.get("seq"), int),
            first=msgspec.convert(wire.get("from", wire.get("seq")), int),
            at_ms=parse_rfc3339(str(wire.get("at"))),
            event=_event(wire, shape),  # pyright: ignore[reportArgumentType] - one of SHOWN
        )
    except (msgspec.ValidationError, ValueError, TypeError):
        return None


def value_of(wire: JsonValue, shape: type[T]) -> T:
    """Return a value of an event or snapshot.

    Raises:
        msgspec.ValidationError: It is not one.
        ValueError: A time in it is none.
    """
    return _made(as_object(_normal(wire)), shape)


def asked_of(wire: JsonValue) -> PermissionRequest | Question:
    """Return a permission request or a question of the wire.

    Raises:
        msgspec.ValidationError: It is neither.
        ValueError: A time in it is none.
    """
    asked = as_object(wire)
    if "subject" not in asked:
        question = value_of(asked, Question)
        return msgspec.structs.replace(question, run=question.run or None)
    request = as_object(_normal(asked))
    whole = {**request, "run": request.get("run") or None, "subject": _subject(asked)}
    return _made(whole, PermissionRequest)


@cache
def _shapes() -> dict[str, type[TaggedEvent]]:
    return {event_name(one): one for one in SHOWN}


def _event(wire: JsonObject, shape: type[TaggedEvent]) -> TaggedEvent:
    if shape in {PermissionRequested, QuestionRequested}:
        match asked_of(wire.get("request")):
            case Question() as question:
                return QuestionRequested(run=question.run, request=question)
            case request:
                return PermissionRequested(run=request.run, request=request)
    return value_of({name: one for name, one in wire.items() if name != "at"}, shape)


def _subject(asked: JsonObject) -> CommandSubject | TargetSubject | TrustSubject | ServerSubject:
    wire = as_object(asked.get("subject"))
    shape = SUBJECTS.get(str(wire.get("type")), TargetSubject)
    places = {
        field: path_of(uri)
        for name, field in PLACES.items()
        if isinstance(uri := wire.get(name), str)
    }
    rest = {name: one for name, one in wire.items() if name not in PLACES}
    return _made({**rest, **places}, shape)


def _made(normal: Mapping[str, object], shape: type[T]) -> T:
    """Return an object of a class. None is left out on the wire, also where the field has no default."""
    return shape(
        **{
            name: _field_of(normal.get(wire_name), name, hint)
            for name, wire_name, is_required, hint in _fields(shape)
            if is_required or wire_name in normal
        }
    )


def _field_of(raw: object, name: str, hint: object) -> object:
    if name in OPAQUE or isinstance(raw, msgspec.Struct):
        return raw  # recursive types of JSON are beyond `convert`
    kind, *_ = get_args(hint) or (None,)
    if kind is QueueItem:
        return tuple(_made(one, QueueItem) for one in msgspec.convert(raw, list[dict[str, object]]))
    return msgspec.convert(raw, threadsafe(cast("type[object]", hint)))


@cache
def _fields(shape: type[msgspec.Struct]) -> Sequence[tuple[str, str, bool, object]]:
    """Return the fields of a class: name, name on the wire, whether it is required, type."""
    hints = get_type_hints(shape, include_extras=True)
    return [(one.name, one.encode_name, one.required, hints[one.name]) for one in fields(shape)]


def _normal(wire: JsonValue) -> JsonValue:
    """Return a value with the names and the grouping of our own classes."""
    match wire:
        case list():
            return [_normal(one) for one in wire]
        case {"tokens": {"in": _, "out": _} as tokens}:
            context = as_object(wire.get("context"))  # stored items have none
            return {
                "tokens": _tokens(tokens, wire.get("cost")),
                "contextUsed": context.get("used"),
                "contextSize": context.get("size", 0),
            }
        case {"type": "image" | "file" as kind, "mime": mime}:
            rest = {name: wire[name] for name in ("name", "data", "blob", "size") if name in wire}
            return {"type": kind, "mimeType": mime, **rest}
        case dict():
            return {TIMES.get(name, name): _field(name, one) for name, one in wire.items()}
        case _:
            return wire


def _field(name: str, wire: JsonValue) -> JsonValue:
    if isinstance(wire, str):
        if name in TIMES:
            return parse_rfc3339(wire)
        return REASONS.get(wire, wire) if name == "stopReason" else wire
    # What a tool was given and has told is its own, whatever its keys are called.
    return wire if name in OPAQUE else _normal(wire)


def _tokens(tokens: JsonObject, cost: JsonValue) -> JsonObject:
    amount = cost.get("amount") if is_object(cost) else None
    out: JsonObject = {"input": tokens.get("in"), **tokens}
    if amount is not None:
        out["cost"] = {"input": 0, "output": amount, "cacheRead": 0, "cacheWrite": 0}
    out["output"] = tokens.get("out")
    return out
