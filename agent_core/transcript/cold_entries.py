"""Which entries leave their bodies in the file, and what stays of them in memory: pure."""

import sys
from collections.abc import Mapping, Sequence

from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_core.messages.attachments import user_texts
from agent_core.messages.stored_value import NOTHING
from agent_core.messages.values import AssistantContent, UserContent
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LineLocation,
    MessageEntry,
    StoredMessage,
    UnknownEntry,
)

PREVIEW_CHARS = 80
_LOOKED_AT = 2 * PREVIEW_CHARS
OWN_PREFIX = "tiller."
"""How the types of our own data begin; that is small and read at every opening."""


def preview_of(entry: AnyEntry) -> str:
    """Return the first words of an entry, on one line; empty when it says nothing."""
    match entry:
        case ColdEntry():
            return entry.preview
        case MessageEntry(message=message):
            return _message_preview(message)
        case CompactionEntry() | BranchSummaryEntry():
            return preview_text(entry.summary)
        case CustomMessageEntry():
            return _text_of(entry.content)
        case _:
            return ""


def cooled(entry: AnyEntry, place: LineLocation) -> AnyEntry:
    """Return what stays in memory of an entry whose line lies there; the entry itself when it is small."""
    # Nearly all are messages, and whole files pass through here.
    if isinstance(entry, MessageEntry):
        return _cold_message(entry, entry.message, place)
    match entry:
        case CompactionEntry() | BranchSummaryEntry():
            compacts = isinstance(entry, CompactionEntry)
            return ColdEntry(
                id=entry.id,
                parent=entry.parent,
                at_ms=entry.at_ms,
                line_extra=NOTHING,
                kind="compaction" if compacts else "branch_summary",
                preview=preview_of(entry),
                usage=entry.usage,
                first_kept=entry.first_kept if compacts else None,
                place=place,
            )
        case CustomMessageEntry():
            return _cold(entry, kind="custom_message", place=place)
        case CustomEntry() if not entry.custom_type.startswith(OWN_PREFIX):
            return _cold(entry, kind="custom", place=place)
        case UnknownEntry():
            return _cold(entry, kind=str(entry.raw.get("type")), place=place)
        case _:
            return entry


def _cold(entry: AnyEntry, *, kind: str, place: LineLocation) -> ColdEntry:
    return ColdEntry(
        id=entry.id,
        parent=entry.parent,
        at_ms=entry.at_ms,
        line_extra=NOTHING,
        kind=kind,
        preview=preview_of(entry),
        place=place,
    )


def _cold_message(entry: MessageEntry, message: StoredMessage, place: LineLocation) -> ColdEntry:
    if isinstance(message, AssistantMessage):
        return _cold_answer(entry, message, place)
    return ColdEntry(
        id=entry.id,
        parent=entry.parent,
        at_ms=entry.at_ms,
        line_extra=NOTHING,
        kind="message",
        role=_ROLES[type(message)],
        preview=_message_preview(message),
        place=place,
    )


def _cold_answer(entry: MessageEntry, said: AssistantMessage, place: LineLocation) -> ColdEntry:
    # The names of models and tools are the same few in all entries.
    called = [sys.intern(part.name) for part in said.content if isinstance(part, ToolCall)]
    model = sys.intern(f"{said.provider}/{said.model}") if said.provider and said.model else None
    return ColdEntry(
        id=entry.id,
        parent=entry.parent,
        at_ms=entry.at_ms,
        line_extra=NOTHING,
        kind="message",
        role="assistant",
        preview=_text_of(said.content),
        model=model,
        usage=said.usage,
        stop_reason=said.stop_reason,
        tool_calls=tuple(called),
        place=place,
    )


_ROLES: Mapping[type[StoredMessage], str] = {
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolResultMessage: "toolResult",
    BashMessage: "bashExecution",
}


def _message_preview(message: StoredMessage) -> str:
    if isinstance(message, BashMessage):
        return preview_text(message.command)
    if isinstance(message, UserMessage):
        return user_preview([part.text for part in message.content if isinstance(part, Text)])
    return _text_of(message.content)


def user_preview(texts: Sequence[str]) -> str:
    """Return the first words of a user, of several texts; context that an editor added is left out."""
    return next((preview for text in user_texts(texts) if (preview := preview_text(text))), "")


def _text_of(content: Sequence[UserContent | AssistantContent]) -> str:
    for part in content:
        if isinstance(part, Text) and (preview := preview_text(part.text)):
            return preview
    return preview_text(", ".join(part.name for part in content if isinstance(part, ToolCall)))


def preview_text(text: str) -> str:
    """Return how a text begins, on one line."""
    head = text[:PREVIEW_CHARS]
    # Nearly all texts begin with words on one line: nothing behind them changes what is shown.
    if head[:1].isalnum() and head[-1] != " " and "  " not in head and head.isprintable():
        return head
    # Blank space in front may be long; behind it a few characters more than shown are enough.
    begun = text[:_LOOKED_AT] if text[:1].isalnum() else text.lstrip()[:_LOOKED_AT]
    if begun.isprintable() and "  " not in begun:
        return begun.rstrip()[:PREVIEW_CHARS]
    return " ".join(begun.split())[:PREVIEW_CHARS]
