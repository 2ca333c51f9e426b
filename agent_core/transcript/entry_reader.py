"""Reads the JSON of each entry type that we know."""

from collections.abc import Callable, Mapping

from agent_core.kernel import EntryId, JsonObject, parse_rfc3339
from agent_core.messages import CustomMessage, Usage
from agent_core.messages.block_codec import NOTHING, decode_user_content
from agent_core.messages.codec import decode_message
from agent_core.messages.plain_codec import decode_plain
from agent_core.messages.usage_codec import decode_usage, whole_number
from agent_core.transcript.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
    TypedEntry,
    UsageEntry,
)

_LINE = frozenset({"type", "id", "parentId", "timestamp"})
_SUMMARY = _LINE | {"summary", "details", "usage", "fromHook"}
_FIELDS: Mapping[str, frozenset[str]] = {
    "session": frozenset({"type", "version", "id", "timestamp", "cwd", "parentSession"}),
    "message": _LINE | {"message"},
    "model_change": _LINE | {"provider", "modelId"},
    "thinking_level_change": _LINE | {"thinkingLevel"},
    "compaction": _SUMMARY | {"firstKeptEntryId", "tokensBefore"},
    "branch_summary": _SUMMARY | {"fromId"},
    "custom": _LINE | {"customType", "data"},
    "custom_message": _LINE | {"customType", "content", "display", "details"},
    "label": _LINE | {"targetId", "label"},
    "session_info": _LINE | {"name"},
    "context_edit": _LINE | {"targetId", "replacement"},
    "usage": _LINE | {"kind", "provider", "model", "usage", "note"},
}
_PLAIN_FIELDS = 5


class EntryLine:
    """One line of a session file: its JSON, and what every line has."""

    __slots__ = ("_odd_time", "at_ms", "id", "kind", "parent", "raw")

    def __init__(self, raw: JsonObject, *, kind: str, line_id: str) -> None:
        parent, stamp = raw.get("parentId"), raw.get("timestamp")
        self.raw = raw
        self.kind = kind
        self.id = EntryId(line_id)
        self.parent = EntryId(parent) if isinstance(parent, str) else None
        try:
            self.at_ms = parse_rfc3339(stamp) if isinstance(stamp, str) else 0
        except (ValueError, OverflowError):
            self.at_ms = 0
        self._odd_time = self.at_ms == 0

    def text(self, key: str) -> str:
        """Return a field that must be there.

        Raises:
            ValueError: It is missing or no text.
        """
        value = self.raw.get(key)
        if isinstance(value, str):
            return value
        message = f"the field {key!r} of a {self.kind!r} entry is {value!r:.80}, not a text"
        raise ValueError(message)

    def rest(self, *odd: str) -> JsonObject:
        """Return the fields that the type does not have, and those named, to be kept as they are."""
        fields = _FIELDS[self.kind]
        raw = self.raw
        if not odd and not self._odd_time and fields.issuperset(raw):
            return NOTHING
        kept = {*odd, "timestamp"} if self._odd_time else set(odd)
        return {key: value for key, value in raw.items() if key not in fields or key in kept}


def read_plain_message(raw: JsonObject) -> MessageEntry | None:
    """Read a line as nearly all are: a message, and nothing to be kept beside it; None for any other."""
    try:
        if raw["type"] != "message" or len(raw) != _PLAIN_FIELDS:
            return None
        entry_id, parent, stamp = raw["id"], raw["parentId"], raw["timestamp"]
        inner = raw["message"]
        if not isinstance(entry_id, str) or not entry_id or not isinstance(inner, dict):
            return None
        if not isinstance(stamp, str) or not (parent is None or isinstance(parent, str)):
            return None
        message, at_ms = decode_plain(inner), parse_rfc3339(stamp)
    except (KeyError, ValueError, OverflowError):
        return None
    if message is None or not at_ms:
        return None
    return MessageEntry(
        id=EntryId(entry_id),
        parent=None if parent is None else EntryId(parent),
        at_ms=at_ms,
        line_extra=NOTHING,
        message=message,
        extra=NOTHING,
    )


def _read_message(line: EntryLine) -> TypedEntry | None:
    inner = line.raw.get("message")
    decoded = decode_message(inner, at_ms=line.at_ms) if isinstance(inner, dict) else None
    if decoded is None:
        return None
    message, extra = decoded
    if not isinstance(message, CustomMessage):
        return MessageEntry(
            id=line.id,
            parent=line.parent,
            at_ms=line.at_ms,
            line_extra=line.rest(),
            message=message,
            extra=extra,
        )
    # Older files hold custom messages as plain ones: the entry of today says the same.
    return CustomMessageEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=dict(line.rest()) | dict(extra),
        custom_type=message.custom_type,
        content=message.content,
        display=message.display,
        details=message.details,
    )


def _read_model_change(line: EntryLine) -> TypedEntry:
    return ModelChange(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        provider=line.text("provider"),
        model=line.text("modelId"),
    )


def _read_thinking_change(line: EntryLine) -> TypedEntry:
    return ThinkingChange(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        level=line.text("thinkingLevel"),
    )


def _read_compaction(line: EntryLine) -> TypedEntry:
    usage, odd = _usage(line)
    return CompactionEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(*odd),
        summary=line.text("summary"),
        first_kept=EntryId(line.text("firstKeptEntryId")),
        tokens_before=whole_number(line.raw.get("tokensBefore")),
        details=line.raw.get("details"),
        usage=usage,
        from_hook=line.raw.get("fromHook") is True,
    )


def _read_branch_summary(line: EntryLine) -> TypedEntry:
    usage, odd = _usage(line)
    return BranchSummaryEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(*odd),
        from_id=line.text("fromId"),
        summary=line.text("summary"),
        details=line.raw.get("details"),
        usage=usage,
        from_hook=line.raw.get("fromHook") is True,
    )


def _read_custom(line: EntryLine) -> TypedEntry:
    return CustomEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        custom_type=line.text("customType"),
        data=line.raw.get("data"),
    )


def _read_custom_message(line: EntryLine) -> TypedEntry:
    content, whole = decode_user_content(line.raw.get("content"))
    return CustomMessageEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(*(() if whole else ("content",))),
        custom_type=line.text("customType"),
        content=content,
        display=line.raw.get("display") is not False,
        details=line.raw.get("details"),
    )


def _read_label(line: EntryLine) -> TypedEntry:
    label = line.raw.get("label")
    return LabelEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        target=EntryId(line.text("targetId")),
        label=label if isinstance(label, str) and label else None,
    )


def _read_session_name(line: EntryLine) -> TypedEntry:
    name = line.raw.get("name")
    return SessionNameEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        name=" ".join(name.split()) if isinstance(name, str) else "",
    )


def _read_context_edit(line: EntryLine) -> TypedEntry:
    return ContextEditEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(),
        target=EntryId(line.text("targetId")),
        replacement=line.raw.get("replacement"),
    )


def _read_usage(line: EntryLine) -> TypedEntry | None:
    usage, odd = _usage(line)
    if usage is None:
        return None
    note = line.raw.get("note")
    if not isinstance(note, str | None):
        odd = (*odd, "note")
    return UsageEntry(
        id=line.id,
        parent=line.parent,
        at_ms=line.at_ms,
        line_extra=line.rest(*odd),
        kind=line.text("kind"),
        provider=line.text("provider"),
        model=line.text("model"),
        usage=usage,
        note=note if isinstance(note, str) else None,
    )


def _usage(line: EntryLine) -> tuple[Usage | None, tuple[str, ...]]:
    if line.raw.get("usage") is None:
        return None, ()
    usage, whole = decode_usage(line.raw["usage"])
    return usage, () if whole else ("usage",)


READERS: Mapping[str, Callable[[EntryLine], TypedEntry | None]] = {
    "message": _read_message,
    "model_change": _read_model_change,
    "thinking_level_change": _read_thinking_change,
    "compaction": _read_compaction,
    "branch_summary": _read_branch_summary,
    "custom": _read_custom,
    "custom_message": _read_custom_message,
    "label": _read_label,
    "session_info": _read_session_name,
    "context_edit": _read_context_edit,
    "usage": _read_usage,
}
"""By the type that the line names."""
