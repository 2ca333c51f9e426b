"""Session entries as lines of JSON, format version 3, decoded when something reads them.

A session of 10,000 entries is opened for its newest ones. A line is checked as a whole at its opening, so that damage
is found then, but only these fields become values.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel import EntryId, JsonObject, JsonValue, json, parse_rfc3339, rfc3339
from agent_core.kernel.values import threadsafe
from agent_core.messages import Cost, CustomMessage, Usage
from agent_core.messages.codec import (
    completed,
    decode_message,
    decode_usage,
    decode_user_content,
    encode_blocks,
    encode_usage,
    exact_usage,
    prepared,
    whole_number,
)
from agent_core.messages.stored_value import FieldRepair, chosen, repaired, to_json
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
    TypedEntry,
    UnknownEntry,
    UsageEntry,
    WholeEntry,
)

HEADER_TYPE = "session"
_ENTRIES: Mapping[JsonValue, type[TypedEntry]] = {
    "message": MessageEntry,
    "model_change": ModelChange,
    "thinking_level_change": ThinkingChange,
    "compaction": CompactionEntry,
    "branch_summary": BranchSummaryEntry,
    "custom": CustomEntry,
    "custom_message": CustomMessageEntry,
    "label": LabelEntry,
    "session_info": SessionNameEntry,
    "context_edit": ContextEditEntry,
    "usage": UsageEntry,
}
_MESSAGE_LINE = frozenset({"type", "id", "parentId", "timestamp", "message"})


def encode_header(header: Header) -> bytes:
    """Write the first line of a session file, without its newline."""
    out = to_json(header)
    out["timestamp"] = rfc3339(header.at_ms)
    _ = out.pop("extra", None)
    return json.encode({**out, **header.extra})


def decode_header(raw: JsonObject) -> Header:
    """Read the first line of a session file.

    Raises:
        ValueError: It is no session header; the message says why.
    """
    session = raw.get("id")
    if raw.get("type") != HEADER_TYPE or not isinstance(session, str) or not session:
        message = "the first line is no session header: it needs a type 'session' and an id"
        raise ValueError(message)
    header, odd = repaired({"version": 1, **raw}, Header, _HEADER_REPAIRS)
    return replace(header, extra=chosen(raw, odd))


def encode_entry(entry: AnyEntry) -> bytes:
    """Write an entry as one line, without its newline.

    Raises:
        TypeError: Its body is not at hand.
    """
    return json.encode(entry_to_json(entry))


def entry_to_json(entry: AnyEntry) -> dict[str, JsonValue]:
    """Return an entry as the JSON object of its line.

    Raises:
        TypeError: Its body is not at hand.
    """
    # Nearly all are messages.
    if isinstance(entry, MessageEntry):
        out = _line(entry)
        body = out["message"]
        if isinstance(body, dict):
            body = completed(body, entry.message)
            body.update(entry.extra)
        return _with_extra(out, entry)
    match entry:
        case ColdEntry():
            message = f"the body of the entry {entry.id!r} is in its file: load it first"
            raise TypeError(message)
        case UnknownEntry():
            return dict(entry.raw) | {"id": entry.id, "parentId": entry.parent}
        case CompactionEntry() | BranchSummaryEntry() | UsageEntry() if entry.usage is not None:
            changed: dict[str, JsonValue] = {"usage": encode_usage(entry.usage)}
        case CustomMessageEntry():
            changed = {"content": encode_blocks(entry.content)}
        case SessionNameEntry():
            changed = {"name": _name(entry.name)[0]}
        case _:
            changed = {}
    return _with_extra(_line(entry) | changed, entry)


def _line(entry: TypedEntry) -> dict[str, JsonValue]:
    out = to_json(entry)
    out["timestamp"] = rfc3339(entry.at_ms)
    return out


def _with_extra(out: dict[str, JsonValue], entry: TypedEntry) -> dict[str, JsonValue]:
    _ = out.pop("line_extra", None)
    _ = out.pop("extra", None)
    if entry.line_extra:
        out.update(entry.line_extra)
    return out


def decode_entry(raw: JsonObject) -> WholeEntry:
    """Read an entry.

    One of a type that we do not know, or that does not hold what its type demands, comes back as
    `UnknownEntry`: it keeps its place in the tree and is never lost.

    Raises:
        ValueError: It has no id or type, so nothing can refer to it.
    """
    exact = decode_exact(raw)
    if exact is not None:
        return exact
    kind, entry_id = raw.get("type"), raw.get("id")
    if not isinstance(kind, str) or not isinstance(entry_id, str) or not entry_id:
        message = (
            f"a session entry needs a type and an id, this one has {kind!r:.80}, {entry_id!r:.80}"
        )
        raise ValueError(message)
    try:
        if kind == "message":
            return _odd_message(raw)
        entry, odd = repaired(raw, _ENTRIES[kind], _REPAIRS)
        return replace(entry, line_extra=chosen(raw, odd))
    except (KeyError, ValueError):
        parent, at_ms = _parent(raw.get("parentId"))[0], _time(raw.get("timestamp"))[0]
        return UnknownEntry(id=EntryId(entry_id), parent=parent, at_ms=at_ms, raw=raw)


def decode_exact(raw: JsonObject) -> TypedEntry | None:
    """Read an entry that is as we write it, as nearly all are; None for any other."""
    if "extra" in raw or "line_extra" in raw:
        return None  # Names of fields of the class, which the file does not have.
    try:
        kind, at_ms = raw["type"], parse_rfc3339(str(raw["timestamp"]))
        line: dict[str, object] = {**raw, "timestamp": at_ms}
        if kind == "message":
            line["message"] = prepared(raw["message"])
        elif raw.get("usage") is not None:
            line["usage"] = exact_usage(raw["usage"])
        elif kind == "session_info" and raw["name"] != _name(raw["name"])[0]:
            return None
        entry = msgspec.convert(line, threadsafe(_ENTRIES[kind]))
    except (KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError):
        return None
    return entry if entry.id and at_ms else None


def _odd_message(raw: JsonObject) -> TypedEntry:
    """Read a line with a message that is odd, or that has fields beside it.

    Raises:
        KeyError, ValueError: There is no message that we know.
    """
    inner = raw["message"]
    parent = _parent(raw.get("parentId"))[0]
    at_ms, is_time = _time(raw.get("timestamp"))
    decoded = decode_message(inner, at_ms=at_ms) if isinstance(inner, dict) else None
    if decoded is None:
        raise ValueError
    message, extra = decoded
    odd = raw.keys() - (_MESSAGE_LINE if is_time else _MESSAGE_LINE - {"timestamp"})
    line_extra = chosen(raw, odd)
    entry_id = EntryId(str(raw["id"]))
    if not isinstance(message, CustomMessage):
        return MessageEntry(
            id=entry_id,
            parent=parent,
            at_ms=at_ms,
            line_extra=line_extra,
            message=message,
            extra=extra,
        )
    # Older files hold custom messages as plain ones: the entry of today says the same.
    return CustomMessageEntry(
        id=entry_id,
        parent=parent,
        at_ms=at_ms,
        line_extra={**line_extra, **extra},
        custom_type=message.custom_type,
        content=message.content,
        display=message.display,
        details=message.details,
    )


def _parent(value: JsonValue) -> tuple[EntryId | None, bool]:
    return EntryId(value) if isinstance(value, str) else None, True


def _time(value: JsonValue) -> tuple[int, bool]:
    try:
        at_ms = parse_rfc3339(value) if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        at_ms = 0
    return at_ms, at_ms != 0


def _decode_usage(value: JsonValue) -> tuple[object, bool]:
    return (None, True) if value is None else decode_usage(value)


def _name(value: JsonValue) -> tuple[str, bool]:
    return " ".join(value.split()) if isinstance(value, str) else "", True


_REPAIRS: Mapping[str, FieldRepair] = {
    "parentId": _parent,
    "timestamp": _time,
    "tokensBefore": lambda value: (whole_number(value), True),
    "usage": _decode_usage,
    "fromHook": lambda value: (value is True, True),
    "content": decode_user_content,
    "display": lambda value: (value is not False, True),
    "label": lambda value: (value if isinstance(value, str) and value else None, True),
    "name": _name,
    "generated": lambda value: (value is True, True),
    "replacement": lambda value: (value, True),
    "note": lambda value: (value, True) if isinstance(value, str | None) else (None, False),
}
"""How fields are read that are missing or of a wrong type; the entry is an unknown one for any other."""
_HEADER_REPAIRS: Mapping[str, FieldRepair] = {
    "timestamp": _time,
    "cwd": lambda value: (value if isinstance(value, str) else "", True),
    "parentSession": _parent,
    "version": lambda value: (whole_number(value), True),
}


class _UsageHead(Usage, frozen=True, kw_only=True, rename={"cost_unknown": "costUnknown"}):
    """Token counts as the file has them."""

    cost_unknown: object = msgspec.UNSET
    """A mark: its presence says that the price is not known."""


class _UserHead(Struct, tag_field="role", tag="user", gc=False):
    """A prompt: nothing of it is needed."""


class _ResultHead(Struct, tag_field="role", tag="toolResult", gc=False):
    """A result of a tool; without these fields the line holds no message that we know."""

    toolCallId: str  # noqa: N815 - the name in the file
    toolName: str  # noqa: N815 - the name in the file


class _AnswerHead(Struct, tag_field="role", tag="assistant", gc=False):
    """An answer; without these fields the line holds no message that we know."""

    api: str
    provider: str
    model: str
    stopReason: Literal["stop", "length", "toolUse", "error", "aborted"]  # noqa: N815 - the name in the file
    usage: _UsageHead | None = None
    errorMessage: str | None = None  # noqa: N815 - the name in the file
    rawStopReason: str | None = None  # noqa: N815 - the name in the file
    responseId: str | None = None  # noqa: N815 - the name in the file


class MessageLine(Struct, kw_only=True, gc=False, rename={"parent": "parentId"}):
    """A message of a session file, of which only the beginning was decoded."""

    type: Literal["message"]
    id: Annotated[EntryId, msgspec.Meta(min_length=1)]
    parent: EntryId | None
    message: _UserHead | _ResultHead | _AnswerHead
    """Checked, then replaced by a constant: thousands of lines are held."""
    text: bytes = b""
    """The whole line."""
    usage: Usage | None = None
    """Tokens of an answer; None: it used none."""
    is_prompt_or_answer: bool = False
    """Whether it is a prompt or an answer."""


StoredEntry = AnyEntry | MessageLine
"""An entry as a transcript holds it."""


def read_head(line: bytes) -> MessageLine | None:
    """Return a message line whose body can be decoded later; None for any other line, also for a damaged one.

    The whole line is valid JSON then: the decoder checks also what it skips, except that texts are UTF-8.
    """
    try:
        head = _decoder().decode(line)
        if not line.isascii():
            _ = line.decode()
    except (ValueError, RecursionError):  # msgspec raises subclasses of ValueError
        return None
    said = head.message
    head.text, head.usage = line, _usage(said) if isinstance(said, _AnswerHead) else None
    head.is_prompt_or_answer = not isinstance(said, _ResultHead)
    head.message = _CHECKED
    return head


def _usage(said: _AnswerHead) -> Usage | None:
    used = said.usage
    if used is None or used.cost_unknown is msgspec.UNSET:
        return used
    # As `read_usage` does: the zeros of a price that is not known are none.
    return replace(used, cost=None) if used != _NOTHING_USED else None


def read_whole(line: MessageLine) -> WholeEntry:
    """Return the entry of a line, with its body."""
    try:
        entry = decode_entry(json.as_object(json.decode(line.text)))
    except ValueError:
        # Nested as deep as no parser of ours goes.
        raw: json.JsonObject = {"type": line.type, "id": line.id, "parentId": line.parent}
        return UnknownEntry(id=line.id, parent=line.parent, at_ms=0, raw=raw)
    # Where a line before it was lost, the entry hangs from another than its line says.
    return entry if entry.parent == line.parent else replace(entry, parent=line.parent)


_CHECKED = _UserHead()
_NOTHING_USED = _UsageHead(cost=Cost(), cost_unknown=True)


@cache
def _decoder() -> "msgspec.json.Decoder[MessageLine]":
    return msgspec.json.Decoder(threadsafe(MessageLine))
