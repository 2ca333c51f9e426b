"""Events as JSON objects: the form that `--json`, the replay cache and the wire share.

The classes name their events (`tag`) and their keys (`rename`). By hand is what msgspec cannot derive from a class:
None that is left out although the field has no default, nested values that JSON groups otherwise (usage, times, content),
and paths. Paths stay paths (`"path"`): a front end that speaks of URIs converts them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import get_args

from msgspec import Struct

from agent_core.events.feed import EventEnvelope
from agent_core.events.union import Event, RunEnded
from agent_core.events.values import (
    CheckpointInfo,
    PermissionRequest,
    Question,
    QueueItem,
    TaggedEvent,
    UsageReport,
)
from agent_core.kernel import JsonValue, rfc3339
from agent_core.messages import File, Image, Text, Usage, UserContent


def event_name(event: type[TaggedEvent]) -> str:
    """Return the `type` of an event in JSON."""
    return str(event.__struct_config__.tag)


def event_types() -> Sequence[type[Event]]:
    """Return the classes of all events, in the order of the union."""
    return get_args(Event)


NAMES: Mapping[type[Event], str] = {event: event_name(event) for event in event_types()}
"""Names of all events, in the order of the union."""
CURRENCY = "USD"
STOP_REASONS: Mapping[str, str] = {"tool_use": "toolUse"}
"""Stop reasons that JSON spells otherwise."""
KEPT_NULL = frozenset({"details", "model", "title", "leaf", "from", "label", "exitCode", "option"})
"""Fields where null says something; any other None is left out."""


def encode(stamped: EventEnvelope) -> dict[str, JsonValue]:
    """Return an event as the JSON object that everybody sees."""
    event = stamped.event
    out: dict[str, JsonValue] = {"seq": stamped.seq}
    if stamped.first != stamped.seq:
        out["from"] = stamped.first
    out["at"] = rfc3339(stamped.at_ms)
    out["type"] = NAMES[type(event)]
    _put_fields(out, event)
    if isinstance(event, RunEnded):
        out["cost"] = cost(event.usage.tokens)
    return out


def usage(report: UsageReport) -> dict[str, JsonValue]:
    """Return tokens, context fill and money in the form of the wire."""
    tokens = report.tokens
    out: dict[str, JsonValue] = {
        "context": {"used": report.context_used, "size": report.context_size},
        "tokens": {
            "in": tokens.input,
            "out": tokens.output,
            "cacheRead": tokens.cache_read,
            "cacheWrite": tokens.cache_write,
            "reasoning": tokens.reasoning,
        },
    }
    money = cost(tokens)
    if money is not None:
        out["cost"] = money
    return out


def cost(tokens: Usage) -> JsonValue:
    """Return money in the form of the wire; None when the price is unknown."""
    if tokens.cost is None:
        return None
    return {"amount": round(tokens.cost.total, 6), "currency": CURRENCY, "estimated": True}


def block(part: UserContent) -> dict[str, JsonValue]:
    """Return a piece of content as a block."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    shown: dict[str, JsonValue] = (
        {"type": "image", "mime": part.mime}
        if isinstance(part, Image)
        else {"type": "file", "name": part.name, "mime": part.mime}
    )
    stored: dict[str, JsonValue] = {"blob": part.blob, "size": part.size}
    return {**shown, **({"data": part.data} if part.blob is None else stored)}


def queue_item(item: QueueItem) -> dict[str, JsonValue]:
    """Return waiting words in the form of the wire."""
    return {
        "queueId": item.queue_id,
        "delivery": item.delivery,
        "content": [block(part) for part in item.content],
        "at": rfc3339(item.at_ms),
    }


def checkpoint(one: CheckpointInfo) -> dict[str, JsonValue]:
    """Return a checkpoint in the form of the wire."""
    out: dict[str, JsonValue] = {"checkpoint": one.checkpoint}
    if one.run is not None:
        out["run"] = one.run
    return out | {"at": rfc3339(one.at_ms), "files": one.files}


def permission(request: PermissionRequest | Question) -> dict[str, JsonValue]:
    """Return a question to a person in the form of the wire, with paths as paths."""
    out: dict[str, JsonValue] = {}
    _put_fields(out, request)
    times = {"sinceMs": "since", "expiresMs": "expires"}
    for key, name in times.items():
        at_ms = out.pop(key, None)
        if isinstance(at_ms, int):
            out[name] = rfc3339(at_ms)
    out.setdefault("run", "")
    return out


def value(one: object) -> JsonValue:
    """Encode anything that stands inside an event or snapshot."""
    match one:
        case None | str() | int() | float() | bool():
            return one
        case Mapping():
            return {str(key): value(item) for key, item in one.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON by construction
        case Sequence():
            return [value(item) for item in one]
        case CheckpointInfo():
            return checkpoint(one)
        case _:
            return _object(one)


def _object(one: object) -> JsonValue:
    match one:
        case Path():
            return str(one)
        case UsageReport():
            return usage(one)
        case Text() | Image() | File():
            return block(one)
        case QueueItem():
            return queue_item(one)
        case PermissionRequest() | Question():
            return permission(one)
        case Struct():
            out: dict[str, JsonValue] = {}
            _put_fields(out, one)
            return out
        case _:
            message = f"an event holds a {type(one).__name__}, which has no JSON form"
            raise TypeError(message)


def _put_fields(out: dict[str, JsonValue], one: Struct) -> None:
    for name, key in _plan(type(one)):
        item: object = getattr(one, name)  # pyright: ignore[reportAny] - any field
        if item is None and key not in KEPT_NULL:
            continue
        if isinstance(item, str):
            out[key] = STOP_REASONS.get(item, item) if name == "stop_reason" else item
        else:
            out[key] = value(item)


@cache
def _plan(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Return a class's fields and their JSON keys; once per class."""
    return tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
