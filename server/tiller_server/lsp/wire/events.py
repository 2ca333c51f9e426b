"""JSON Schema of the events: made from the classes of `agent_core.events` and the tables of what differs on the wire.

A class defines its event: its tag is the `type`, `msgspec.Meta` bounds a number, docstrings describe class and fields. A
field whose type has None is left out instead of null, unless the codec keeps the null. Where a class has a closed set of
words, the wire admits words of vendors too. Decision 0074.
"""

import builtins
import collections.abc
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, get_args, get_origin

import msgspec
from pydantic import TypeAdapter
from typing_extensions import TypeAliasType

from agent_core import events as core
from agent_core.events.codec import KEPT_NULL, NAMES, event_name
from agent_core.events.values import MessageRole, SafeCount, SessionState, TaggedEvent
from agent_core.kernel import JsonObject, JsonValue, RunId
from agent_core.kernel.values import Value
from agent_core.messages import StopReason, UserContent
from tiller_server.lsp.wire import blocks, changes, errors, permissions, session
from tiller_server.lsp.wire.base import (
    Timestamp,
    UncheckedJson,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.field_docs import field_docs

__all__ = ["DEFINITIONS", "EVENTS", "PlanStep", "event_definitions"]


class PlanStep(WireModel):
    """Step of a plan."""

    text: str
    status: Literal["pending", "active", "done"] | Vendor


class PlanUpdated(TaggedEvent, frozen=True, kw_only=True, tag="plan.updated"):
    """Complete plan."""

    run: RunId | None
    plan: tuple[PlanStep, ...]


class UiEvent(TaggedEvent, frozen=True, kw_only=True):
    """Dialog or view of an extension."""

    request: str | None = None
    """Dialog that `agent/question/respond` answers."""
    extension: str | None = None
    view: JsonObject


RESERVED: Final = (PlanUpdated,)
"""Events of the protocol that this release does not send."""
UI_VIEWS: Final[Sequence[type[core.UiEvent]]] = get_args(core.UiEvent)
"""Classes that are one shape on the wire."""
UI_TYPES: Final = (
    *("ui.select", "ui.confirm", "ui.input", "ui.editor"),  # reserved
    *(NAMES[view] for view in UI_VIEWS),
)

DEFINITION_NAMES: Final[Mapping[type[TaggedEvent], str]] = {
    core.SessionConfigured: "SessionConfigChanged",
    core.SessionRoots: "SessionRootsChanged",
    core.SessionUsage: "SessionUsageChanged",
    core.SessionTitle: "SessionTitleChanged",
    core.SessionClients: "SessionClientsChanged",
    core.SessionTrust: "SessionTrustChanged",
    core.Notice: "NoticeGiven",
    core.ExtensionError: "ExtensionErrorRaised",
}
"""Names in the schema that are not those of the classes."""
DEFINITIONS: Final[Mapping[object, type[WireModel] | TypeAliasType]] = {
    **{each: each for each in (session.Cost, session.Usage, changes.ChangeSet, PlanStep)},
    core.Attendant: session.Attendant,
    core.ChangeCounts: changes.ChangeCounts,
    core.CheckpointInfo: changes.Checkpoint,
    core.CompactionReason: session.CompactionReason,
    core.Delivery: session.MessageDelivery,
    core.DocumentChange: session.DocumentOutcome,
    core.Failure: errors.RunError,
    core.FolderTrust: permissions.FolderTrust,
    core.PermissionRequest: permissions.PermissionRequest,
    core.Question: permissions.Question,
    core.QueueItem: session.QueueItem,
    core.RuleInfo: permissions.Rule,
    core.RunParent: session.RunParent,
    core.RunStatus: errors.RunStatus,
    core.SessionConfig: session.SessionConfig,
    core.ThinkingLevel: session.Thinking,
    core.ToolStatus: session.ToolStatus,
    core.UsageReport: session.SpentUsage,
    core.WorkspaceRoot: session.Root,
    MessageRole: session.MessageRole,
    SessionState: session.SessionState,
    StopReason: session.StopReason,
    UserContent: blocks.Block,
}
"""Definitions of the schema that are not events, by the type that an event class has in their place."""


class WireField(Value, frozen=True, kw_only=True):
    """A field that the wire has and the core lacks, or has with another type."""

    kind: object
    required: bool = False
    before: str | None = None
    """Field that follows a field which the core lacks; None: it is the last."""


FIELDS: Final[Mapping[type[TaggedEvent], Mapping[str, WireField]]] = {
    **{
        event: {"from": WireField(kind=SafeCount, before="type")}
        for event in (
            *(core.MessageDelta, core.ThoughtDelta, core.ThoughtEnded),
            *(core.ToolInputDelta, core.ToolOutputDelta),
        )
    },
    core.ToolEnded: {
        "from": WireField(kind=SafeCount, before="type"),
        "durationMs": WireField(kind=Annotated[float, msgspec.Meta(ge=0)]),
    },
    core.MessageEnded: {"from": WireField(kind=SafeCount, before="delivery")},
    core.BashOutput: {"from": WireField(kind=SafeCount, before="text")},
    core.BashEnded: {
        "output": WireField(kind=str),
        "cancelled": WireField(kind=bool),
        "truncated": WireField(kind=bool),
    },
    core.ModelChanged: {"model": WireField(kind=str | None, required=True)},
    core.Notice: {"level": WireField(kind=Literal["info", "warning", "error"], required=True)},
    core.QuestionResolved: {"option": WireField(kind=str, before="by")},
    core.RunEnded: {
        "cost": WireField(kind=session.Cost | None, required=True, before="changes"),
        "changes": WireField(kind=core.ChangeCounts | changes.ChangeSet, required=True),
    },
    core.SessionUsage: {"usage": WireField(kind=session.Usage, required=True)},
    core.ToolRunning: {"title": WireField(kind=str)},
    core.ToolStarted: {"input": WireField(kind=JsonObject)},
}
"""Fields that differ, by event."""
UNIONS: Final = frozenset({UnionType, get_origin(RunId | None)})
"""Origins of a union: of classes, and of one that has a `NewType` or a `Literal`."""
PLACE: Final = ("run", "turn", "item")
"""Fields that name where an event belongs; PROTOCOL.md describes them once for all events."""
PLACED: Final = frozenset(
    {core.SessionStateChanged, core.SessionConfigured, core.SessionUsage, core.QueueChanged}
    | {core.CheckpointRestored, core.Notice, core.ExtensionError, UiEvent}
)
"""Events of the session that may name their place on the wire."""
RUN_EVENTS: Final = (
    *("changes.", "compaction.", "edit.", "message.", "plan.", "retry.", "run.", "task."),
    *("thought.", "tool.", "turn."),
)
"""Beginnings of the names of events that stand behind the others in the schema."""


def _types(event: type[TaggedEvent]) -> Sequence[str]:
    return UI_TYPES if event is UiEvent else (event_name(event),)


def _definition_name(event: type[TaggedEvent]) -> str:
    return DEFINITION_NAMES.get(event, event.__name__)


_CLASSES: Final = sorted(
    (*(event for event in NAMES if event not in UI_VIEWS), UiEvent, *RESERVED),
    key=lambda event: (_types(event)[0].startswith(RUN_EVENTS), _definition_name(event)),
)

EVENTS: Final[Mapping[str, str]] = {
    name: _definition_name(event) for event in _CLASSES for name in _types(event)
}
"""Definitions of the schema by the `type` of every event, in the order of the schema."""


def event_definitions() -> Mapping[str, UncheckedJsonObject]:
    """Return the definitions of all events."""
    return {_definition_name(event): _definition(event) for event in _CLASSES}


class _Field(Value, frozen=True, kw_only=True):
    schema: UncheckedJsonObject
    required: bool = True


def _definition(event: type[TaggedEvent]) -> UncheckedJsonObject:
    fields = _fields(event)
    required: list[UncheckedJson] = [key for key, field in fields.items() if field.required]
    if event is not UiEvent:
        required.remove("type")
        required.insert(0, "type")
    return {
        "description": inspect.getdoc(event),
        "properties": {key: field.schema for key, field in fields.items()},
        "required": required,
        "type": "object",
    }


def _fields(event: type[TaggedEvent]) -> Mapping[str, _Field]:
    """Return the fields of an event on the wire, in the order of the schema."""
    own = inspect.get_annotations(event)
    declared = {name: (key, field) for name, key, field in _declared(event)}
    fields = {
        "seq": _Field(schema=_schema(SafeCount)),
        "at": _Field(schema=TypeAdapter(Timestamp).json_schema()),
        **_place(event, {name: declared.pop(name)[1] for name in PLACE if name in declared}),
        **{key: field for name, (key, field) in declared.items() if name not in own},
        "type": _Field(schema=_type(event)),
        **{key: field for name, (key, field) in declared.items() if name in own},
    }
    for key, wire in FIELDS.get(event, {}).items():
        field = _Field(schema=_schema(wire.kind), required=wire.required)
        fields = _insert(fields, key, field, before=wire.before)
    for name, text in field_docs(event).items():
        if name in declared:
            key = declared[name][0]
            described = {**fields[key].schema, "description": text}
            fields[key] = _Field(schema=described, required=fields[key].required)
    return fields


def _declared(event: type[TaggedEvent]) -> Iterator[tuple[str, str, _Field]]:
    """Return name, key and schema of the fields that a class of the core has."""
    kinds: dict[str, object] = {}
    for base in reversed(event.__mro__):
        kinds.update(inspect.get_annotations(base))
    names, defaults = event.__struct_fields__, event.__struct_defaults__
    defaults = (*[msgspec.NODEFAULT] * (len(names) - len(defaults)), *defaults)
    for name, key, default in zip(names, event.__struct_encode_fields__, defaults, strict=True):
        kind = kinds[name]
        has_none = NoneType in get_args(kind)
        if default is msgspec.NODEFAULT and (not has_none or key in KEPT_NULL):
            yield name, key, _Field(schema=_schema(kind))
        else:
            yield name, key, _Field(schema=_schema(kind, none=False), required=False)


def _place(event: type[TaggedEvent], declared: Mapping[str, _Field]) -> Mapping[str, _Field]:
    """Return run, turn and item: an event of the core leaves out those that it never has."""
    if not declared:
        names = PLACE if event in PLACED else ()
    elif "turn" in declared:
        names = tuple(declared)
    else:
        names = PLACE[:2] if declared["run"].required else PLACE
    absent = _Field(schema=_schema(str), required=False)
    return {name: declared.get(name, absent) for name in names}


def _insert(
    fields: Mapping[str, _Field], key: str, field: _Field, *, before: str | None
) -> dict[str, _Field]:
    """Return the fields with another one, or with one replaced where it stands."""
    if key in fields or before is None:
        return {**fields, key: field}
    keys = list(fields)
    keys.insert(keys.index(before), key)
    return {each: fields.get(each, field) for each in keys}


def _type(event: type[TaggedEvent]) -> UncheckedJsonObject:
    names: list[UncheckedJson] = [*_types(event)]
    given: UncheckedJsonObject = {"const": names[0]} if len(names) == 1 else {"enum": names}
    return {**given, "type": "string"}


def _schema(kind: object, *, none: bool = True) -> UncheckedJsonObject:
    """Return the schema of a type as the wire has it, with or without None."""
    if kind in DEFINITIONS:
        return _ref(DEFINITIONS[kind].__name__)
    if kind == JsonValue:
        return _ref("JsonValue")
    if get_origin(kind) not in UNIONS:
        return _plain(kind)
    members = [_schema(each) for each in get_args(kind) if none or each is not NoneType]
    return members[0] if len(members) == 1 else {"anyOf": [*members]}


def _plain(kind: object) -> UncheckedJsonObject:
    arguments = get_args(kind)
    match get_origin(kind):
        case builtins.tuple:
            return {"items": _schema(arguments[0]), "type": "array"}
        case collections.abc.Mapping:
            return {"additionalProperties": _ref("JsonValue"), "type": "object"}
        case typing.Literal:
            given = {"enum": [*arguments]} if arguments[1:] else {"const": arguments[0]}
            return {"anyOf": [{**given, "type": "string"}, {"pattern": "^_", "type": "string"}]}
        case _:
            return dict(sorted(msgspec.json.schema(kind).items()))


def _ref(definition: str) -> UncheckedJsonObject:
    return {"$ref": f"#/$defs/{definition}"}
