"""The entries of a session file, format version 3."""

import msgspec

from agent_core.kernel import EntryId, JsonObject, JsonValue, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    StopReason,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)

FORMAT_VERSION = 3

StoredMessage = UserMessage | AssistantMessage | ToolResultMessage | BashMessage
"""The messages that `message` entries hold; summaries and custom messages have entry types of their own."""


class Header(Value, frozen=True, kw_only=True):
    """The first line of a session file."""

    id: SessionId
    at_ms: int
    cwd: str
    parent_session: str | None = None
    version: int = FORMAT_VERSION
    extra: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """Fields that we do not know, kept."""


class SessionEntry(Value, frozen=True, kw_only=True):
    """Fields of every line after the header."""

    id: EntryId
    parent: EntryId | None
    at_ms: int
    line_extra: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """Fields of the line that we do not know, kept."""


class MessageEntry(SessionEntry, frozen=True, kw_only=True):
    """A message."""

    message: StoredMessage
    extra: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """Fields of the message that the value does not show whole, kept as they were read."""


class ModelChange(SessionEntry, frozen=True, kw_only=True):
    """Another model from here on."""

    provider: str
    model: str


class ThinkingChange(SessionEntry, frozen=True, kw_only=True):
    """Another thinking level from here on."""

    level: str


class CompactionEntry(SessionEntry, frozen=True, kw_only=True):
    """Everything before `first_kept` is replaced by the summary in the model's context."""

    summary: str
    first_kept: EntryId
    tokens_before: int
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


class BranchSummaryEntry(SessionEntry, frozen=True, kw_only=True):
    """Summary of a branch that was left."""

    from_id: str
    summary: str
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


class CustomEntry(SessionEntry, frozen=True, kw_only=True):
    """Data of a program, not in the model's context; ours begin with `tiller.`."""

    custom_type: str
    data: JsonValue = None


class CustomMessageEntry(SessionEntry, frozen=True, kw_only=True):
    """Words of an extension, in the model's context as the user's."""

    custom_type: str
    content: tuple[UserContent, ...]
    display: bool = True
    details: JsonValue = None


class LabelEntry(SessionEntry, frozen=True, kw_only=True):
    """A name for another entry; None clears it."""

    target: EntryId
    label: str | None


class SessionNameEntry(SessionEntry, frozen=True, kw_only=True):
    """The session's title; empty clears it."""

    name: str


class ContextEditEntry(SessionEntry, frozen=True, kw_only=True):
    """Another entry is left out of (None) or replaced in the model's context."""

    target: EntryId
    replacement: JsonValue


class UnknownEntry(SessionEntry, frozen=True, kw_only=True):
    """An entry type that we do not know, kept as it is."""

    raw: JsonObject


class UsageEntry(SessionEntry, frozen=True, kw_only=True):
    """Tokens that were used beside the conversation; counted, and never in the model's context."""

    kind: str
    """Purpose of the usage; any word."""
    provider: str
    model: str
    usage: Usage
    note: str | None = None


class LineLocation(Value, frozen=True, kw_only=True):
    """Where a line lies in its file."""

    offset: int
    size: int
    """Bytes, without the newline."""


class ColdEntry(SessionEntry, frozen=True, kw_only=True):
    """An entry whose body stays in the file; the context of the present leaf never holds one.

    The fields for lists, trees and totals are in memory; `Recorder.load` reads the rest.
    """

    kind: str
    """The type of its line (`message`, `compaction` …)."""
    role: str | None = None
    """Of a message, as the line has it (`user`, `assistant`, `toolResult`, `bashExecution`)."""
    preview: str = ""
    """Its first words, on one line."""
    model: str | None = None
    """`provider/id` of an answer."""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    tool_calls: tuple[str, ...] = ()
    """Names of the tools that an answer calls."""
    first_kept: EntryId | None = None
    """Of a compaction: where the part begins that it kept."""
    place: LineLocation


TypedEntry = (
    MessageEntry
    | ModelChange
    | ThinkingChange
    | CompactionEntry
    | BranchSummaryEntry
    | CustomEntry
    | CustomMessageEntry
    | LabelEntry
    | SessionNameEntry
    | ContextEditEntry
    | UsageEntry
)
WholeEntry = TypedEntry | UnknownEntry
"""An entry with its body."""
AnyEntry = WholeEntry | ColdEntry
