"""Short ways to write down entries and messages."""

from agent_core.kernel import EntryId, JsonObject, SessionId, ToolCallId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    StopReason,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_core.transcript import CompactionEntry, Header, MessageEntry, StoredMessage

AT_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def header(session: str = "s1", *, cwd: str = "/w/project", at_ms: int = AT_MS) -> Header:
    """A session's header."""
    return Header(id=SessionId(session), at_ms=at_ms, cwd=cwd)


def user(text: str, *, at_ms: int = AT_MS) -> UserMessage:
    """The user's words."""
    return UserMessage(content=(Text(text=text),) if text else (), at_ms=at_ms)


def assistant(
    *content: AssistantContent | str,
    usage: Usage | None = None,
    stop_reason: StopReason = "stop",
    model: str = "m",
    at_ms: int = AT_MS,
) -> AssistantMessage:
    """An answer."""
    return AssistantMessage(
        content=tuple(Text(text=part) if isinstance(part, str) else part for part in content),
        api="openai-completions",
        provider="lab",
        model=model,
        stop_reason=stop_reason,
        usage=usage or Usage(),
        at_ms=at_ms,
    )


def call(name: str, arguments: JsonObject | None = None, *, call_id: str = "c1") -> ToolCall:
    """A tool call."""
    return ToolCall(id=ToolCallId(call_id), name=name, arguments=arguments or {})


def result(text: str, *, call_id: str = "c1", is_error: bool = False) -> ToolResultMessage:
    """What a tool gave back."""
    return ToolResultMessage(
        call_id=ToolCallId(call_id),
        tool_name="read",
        content=(Text(text=text),),
        is_error=is_error,
        at_ms=AT_MS,
    )


def entry(
    entry_id: str, message: StoredMessage, *, parent: str | None = None, at_ms: int = AT_MS
) -> MessageEntry:
    """An entry with a message."""
    return MessageEntry(
        id=EntryId(entry_id),
        parent=None if parent is None else EntryId(parent),
        at_ms=at_ms,
        message=message,
    )


def chain(*messages: StoredMessage, after: str | None = None, first: int = 1) -> list[MessageEntry]:
    """Entries e1, e2, … each following the one before it."""
    entries: list[MessageEntry] = []
    parent = after
    for number, message in enumerate(messages, start=first):
        entries.append(entry(f"e{number}", message, parent=parent))
        parent = f"e{number}"
    return entries


def compaction(
    entry_id: str,
    *,
    parent: str,
    first_kept: str,
    summary: str = "what happened",
    details: JsonObject | None = None,
    from_hook: bool = False,
) -> CompactionEntry:
    """A compaction."""
    return CompactionEntry(
        id=EntryId(entry_id),
        parent=EntryId(parent),
        at_ms=AT_MS,
        summary=summary,
        first_kept=EntryId(first_kept),
        tokens_before=1000,
        details=details,
        from_hook=from_hook,
    )
