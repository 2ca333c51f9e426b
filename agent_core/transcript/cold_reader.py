"""Reads message lines whose bodies stay in the file, without making the messages: pure."""

import sys

from agent_core.kernel import EntryId, JsonObject, JsonValue, parse_rfc3339
from agent_core.messages.attachments import BEGINNINGS
from agent_core.messages.codec import STOP_REASONS, read_usage
from agent_core.messages.stored_value import NOTHING
from agent_core.transcript.cold_entries import preview_text, user_preview
from agent_core.transcript.entries import ColdEntry, LineLocation

_LINE_FIELDS = 5


def read_cold(raw: JsonObject, place: LineLocation) -> ColdEntry | None:
    """Return what `cooled` would leave of a line; None for any that is not as nearly all are."""
    try:
        if raw["type"] != "message" or len(raw) != _LINE_FIELDS:
            return None
        entry_id, parent, stamp = raw["id"], raw["parentId"], raw["timestamp"]
        inner = raw["message"]
        if not isinstance(entry_id, str) or not entry_id or not isinstance(inner, dict):
            return None
        if not isinstance(stamp, str) or not (parent is None or isinstance(parent, str)):
            return None
        own_id, after = EntryId(entry_id), None if parent is None else EntryId(parent)
        at_ms = parse_rfc3339(stamp)
        if inner["role"] == "assistant":
            return _answer(inner, entry_id=own_id, parent=after, at_ms=at_ms, place=place)
        return _said(inner, entry_id=own_id, parent=after, at_ms=at_ms, place=place)
    except (KeyError, ValueError, OverflowError):
        return None


def _said(
    raw: JsonObject, *, entry_id: EntryId, parent: EntryId | None, at_ms: int, place: LineLocation
) -> ColdEntry | None:
    role = raw["role"]
    if role == "toolResult":
        is_supported = isinstance(raw["toolCallId"], str) and isinstance(raw["toolName"], str)
    else:
        is_supported = role == "user"
    content = raw["content"]
    found = _preview_and_calls(content)
    if not is_supported or found is None or found[1] or not isinstance(content, list):
        return None
    preview = found[0]
    if role == "user" and (len(content) > 1 or preview.startswith(BEGINNINGS)):
        texts = (one.get("text") for one in content if isinstance(one, dict))
        preview = user_preview([one for one in texts if isinstance(one, str)])
    return ColdEntry(
        id=entry_id,
        parent=parent,
        at_ms=at_ms,
        line_extra=NOTHING,
        kind="message",
        role="user" if role == "user" else "toolResult",
        preview=preview,
        place=place,
    )


def _answer(
    raw: JsonObject, *, entry_id: EntryId, parent: EntryId | None, at_ms: int, place: LineLocation
) -> ColdEntry | None:
    provider, model, stop = raw["provider"], raw["model"], raw["stopReason"]
    found = _preview_and_calls(raw["content"])
    if found is None or not isinstance(stop, str) or not isinstance(raw["api"], str):
        return None
    if not (isinstance(provider, str) and isinstance(model, str)):
        return None
    if "errorMessage" in raw or not _may_be_text(raw.get("rawStopReason")):
        return None
    if not _may_be_text(raw.get("responseId")):
        return None
    preview, called = found
    return ColdEntry(
        id=entry_id,
        parent=parent,
        at_ms=at_ms,
        line_extra=NOTHING,
        kind="message",
        role="assistant",
        preview=preview or preview_text(", ".join(called)),
        # The names of models and tools are the same few in all entries.
        model=sys.intern(f"{provider}/{model}") if provider and model else None,
        usage=read_usage(raw["usage"]),
        stop_reason=STOP_REASONS[stop],
        tool_calls=tuple(map(sys.intern, called)) if called else (),
        place=place,
    )


def _may_be_text(value: JsonValue) -> bool:
    return value is None or isinstance(value, str)


def _preview_and_calls(content: JsonValue) -> tuple[str, list[str]] | None:
    """Return the first words of some blocks and the names of the tools they call; None where blocks are odd."""
    if not isinstance(content, list):
        return None
    preview = ""
    called: list[str] = []
    for block in content:
        if not isinstance(block, dict):
            return None
        kind = block["type"]
        if kind == "text":
            text = block["text"]
            if not isinstance(text, str):
                return None
            preview = preview or preview_text(text)
        elif kind == "toolCall":
            name = block["name"]
            if not (isinstance(name, str) and isinstance(block["id"], str)):
                return None
            called.append(name)
        elif kind != "thinking":
            return None
    return preview, called
