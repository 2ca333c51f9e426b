"""Events as JSON objects: the form that `--json`, the replay cache and the wire share.

The names of events exist only here. Paths stay paths (`"path"`): a front end that speaks of URIs turns them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from agent_core.events.feed import EventEnvelope
from agent_core.events.permissions import (
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
)
from agent_core.events.questions import Question, QuestionRequested, QuestionResolved
from agent_core.events.session_events import (
    BashEnded,
    BashOutput,
    BashStarted,
    CheckpointCreated,
    CheckpointRestored,
    EntryLabelled,
    ErrorRaised,
    ExtensionError,
    LeafMoved,
    ModelChanged,
    Notice,
    SessionClients,
    SessionConfigured,
    SessionRoots,
    SessionStateChanged,
    SessionTitle,
    SessionTrust,
    SessionUsage,
)
from agent_core.events.ui import UiEditorText, UiNotify, UiStatus, UiTitle, UiWidget
from agent_core.events.union import (
    ChangesUpdated,
    CompactionEnded,
    CompactionStarted,
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
    EditSaved,
    EditUndone,
    Event,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    QueueChanged,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_core.events.values import CheckpointInfo, QueueItem, UsageReport
from agent_core.kernel import JsonValue, rfc3339
from agent_core.messages import Image, Text, Usage

NAMES: Mapping[type[Event], str] = {
    SessionStateChanged: "session.state",
    SessionConfigured: "session.config",
    SessionRoots: "session.roots",
    SessionUsage: "session.usage",
    SessionTitle: "session.title",
    SessionClients: "session.clients",
    SessionTrust: "session.trust",
    RunStarted: "run.started",
    RunEnded: "run.ended",
    TurnStarted: "turn.started",
    TurnEnded: "turn.ended",
    MessageStarted: "message.started",
    MessageDelta: "message.delta",
    MessageEnded: "message.ended",
    ThoughtStarted: "thought.started",
    ThoughtDelta: "thought.delta",
    ThoughtEnded: "thought.ended",
    ToolStarted: "tool.started",
    ToolInputDelta: "tool.input.delta",
    ToolRunning: "tool.running",
    ToolOutputDelta: "tool.output.delta",
    ToolEnded: "tool.ended",
    EditApplied: "edit.applied",
    EditConflict: "edit.conflict",
    EditRejected: "edit.rejected",
    EditProposed: "edit.proposed",
    EditUndone: "edit.undone",
    EditSaved: "edit.saved",
    ChangesUpdated: "changes.updated",
    QueueChanged: "queue.changed",
    PermissionRequested: "permission.requested",
    PermissionResolved: "permission.resolved",
    QuestionRequested: "question.requested",
    QuestionResolved: "question.resolved",
    CompactionStarted: "compaction.started",
    CompactionEnded: "compaction.ended",
    RetryStarted: "retry.started",
    RetryEnded: "retry.ended",
    ModelChanged: "model.changed",
    LeafMoved: "leaf.moved",
    CheckpointCreated: "checkpoint.created",
    CheckpointRestored: "checkpoint.restored",
    EntryLabelled: "entry.labelled",
    BashStarted: "bash.started",
    BashOutput: "bash.output",
    BashEnded: "bash.ended",
    Notice: "notice",
    ErrorRaised: "error",
    ExtensionError: "extension.error",
    UiNotify: "ui.notify",
    UiStatus: "ui.status",
    UiWidget: "ui.widget",
    UiTitle: "ui.title",
    UiEditorText: "ui.editorText",
}

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


def camel(name: str) -> str:
    """Spell a field's name as JSON does."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


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


def block(part: Text | Image) -> dict[str, JsonValue]:
    """Return a piece of content as a block."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "mime": part.mime, "data": part.data}


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
        case Text() | Image():
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
    """Name a class's fields and their JSON keys; asked once per class."""
    return tuple((name, camel(name)) for name in kind.__struct_fields__)
