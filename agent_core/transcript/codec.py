"""Session entries as lines of JSON, format version 3."""

from agent_core.kernel import JsonObject, JsonValue, SessionId, json, rfc3339
from agent_core.messages.block_codec import NOTHING, encode_blocks
from agent_core.messages.codec import encode_message
from agent_core.messages.usage_codec import encode_usage, whole_number
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
from agent_core.transcript.entry_reader import READERS, EntryLine, read_plain_message

HEADER_TYPE = "session"


def encode_header(header: Header) -> bytes:
    """Write the first line of a session file, without its newline."""
    out: dict[str, JsonValue] = {
        "type": HEADER_TYPE,
        "version": header.version,
        "id": header.id,
        "timestamp": rfc3339(header.at_ms),
        "cwd": header.cwd,
    }
    if header.parent_session is not None:
        out["parentSession"] = header.parent_session
    out.update(header.extra)
    return json.encode(out)


def decode_header(raw: JsonObject) -> Header:
    """Read the first line of a session file.

    Raises:
        ValueError: It is no session header; the message says why.
    """
    session = raw.get("id")
    if raw.get("type") != HEADER_TYPE or not isinstance(session, str) or not session:
        message = "the first line is no session header: it needs a type 'session' and an id"
        raise ValueError(message)
    cwd = raw.get("cwd")
    parent = raw.get("parentSession")
    line = EntryLine(raw, kind=HEADER_TYPE, line_id=session)
    return Header(
        id=SessionId(session),
        at_ms=line.at_ms,
        cwd=cwd if isinstance(cwd, str) else "",
        parent_session=parent if isinstance(parent, str) else None,
        version=whole_number(raw.get("version", 1)),
        extra=line.rest(),
    )


def encode_entry(entry: AnyEntry) -> bytes:
    """Write an entry as one line, without its newline.

    Raises:
        TypeError: Its body is not at hand.
    """
    return json.encode(entry_to_json(entry))


def decode_entry(raw: JsonObject) -> WholeEntry:
    """Read an entry.

    One of a type that we do not know, or that does not hold what its type demands, comes back as
    `UnknownEntry`: it keeps its place in the tree and is never lost.

    Raises:
        ValueError: It has no id or type, so nothing can refer to it.
    """
    plain = read_plain_message(raw)
    if plain is not None:
        return plain
    kind, entry_id = raw.get("type"), raw.get("id")
    if not isinstance(kind, str) or not isinstance(entry_id, str) or not entry_id:
        message = (
            f"a session entry needs a type and an id, this one has {kind!r:.80}, {entry_id!r:.80}"
        )
        raise ValueError(message)
    line = EntryLine(raw, kind=kind, line_id=entry_id)
    read = READERS.get(kind)
    try:
        entry = None if read is None else read(line)
    except ValueError:
        entry = None
    if entry is not None:
        return entry
    return UnknownEntry(
        id=line.id, parent=line.parent, at_ms=line.at_ms, line_extra=NOTHING, raw=raw
    )


def entry_to_json(entry: AnyEntry) -> dict[str, JsonValue]:
    """Return an entry as the JSON object of its line.

    Raises:
        TypeError: Its body is not at hand.
    """
    if isinstance(entry, ColdEntry):
        message = f"the body of the entry {entry.id!r} is in its file: load it first"
        raise TypeError(message)
    if isinstance(entry, UnknownEntry):
        return dict(entry.raw) | {"id": entry.id, "parentId": entry.parent}
    kind, body = _body(entry)
    out: dict[str, JsonValue] = {
        "type": kind,
        "id": entry.id,
        "parentId": entry.parent,
        "timestamp": rfc3339(entry.at_ms),
    }
    out.update(body)
    if entry.line_extra:
        out.update(entry.line_extra)
    return out


def _body(entry: TypedEntry) -> tuple[str, dict[str, JsonValue]]:
    match entry:
        case MessageEntry():
            return "message", {"message": encode_message(entry.message, extra=entry.extra)}
        case CompactionEntry():
            body: dict[str, JsonValue] = {
                "summary": entry.summary,
                "firstKeptEntryId": entry.first_kept,
                "tokensBefore": entry.tokens_before,
            }
            return "compaction", body | _summary_tail(entry)
        case BranchSummaryEntry():
            body = {"fromId": entry.from_id, "summary": entry.summary}
            return "branch_summary", body | _summary_tail(entry)
        case CustomEntry() | CustomMessageEntry():
            return _custom_body(entry)
        case UsageEntry():
            body = {"kind": entry.kind, "provider": entry.provider, "model": entry.model}
            body["usage"] = encode_usage(entry.usage)
            return "usage", body if entry.note is None else body | {"note": entry.note}
        case _:
            return _small_body(entry)


def _small_body(
    entry: ModelChange | ThinkingChange | LabelEntry | SessionNameEntry | ContextEditEntry,
) -> tuple[str, dict[str, JsonValue]]:
    match entry:
        case ModelChange():
            return "model_change", {"provider": entry.provider, "modelId": entry.model}
        case ThinkingChange():
            return "thinking_level_change", {"thinkingLevel": entry.level}
        case LabelEntry():
            body: dict[str, JsonValue] = {"targetId": entry.target}
            return "label", body if entry.label is None else body | {"label": entry.label}
        case SessionNameEntry():
            return "session_info", {"name": " ".join(entry.name.split())}
        case ContextEditEntry():
            return "context_edit", {"targetId": entry.target, "replacement": entry.replacement}


def _custom_body(entry: CustomEntry | CustomMessageEntry) -> tuple[str, dict[str, JsonValue]]:
    body: dict[str, JsonValue] = {"customType": entry.custom_type}
    if isinstance(entry, CustomEntry):
        return "custom", body if entry.data is None else body | {"data": entry.data}
    body["content"] = encode_blocks(entry.content)
    body["display"] = entry.display
    if entry.details is not None:
        body["details"] = entry.details
    return "custom_message", body


def _summary_tail(entry: CompactionEntry | BranchSummaryEntry) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {}
    if entry.details is not None:
        out["details"] = entry.details
    if entry.usage is not None:
        out["usage"] = encode_usage(entry.usage)
    if entry.from_hook:
        out["fromHook"] = True
    return out
