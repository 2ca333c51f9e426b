"""The entries of a session file, format version 3."""

from dataclasses import field

from agent_core.kernel import EntryId, JsonObject, JsonValue, SessionId
from agent_core.kernel.records import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a session file."""

    id: SessionId
    at_ms: int
    cwd: str
    parent_session: str | None = None
    version: int = FORMAT_VERSION
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields that we do not know, kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What every line after the header has."""

    id: EntryId
    parent: EntryId | None
    at_ms: int
    line_extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields of the line that we do not know, kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEntry(Entry):
    """A message."""

    message: StoredMessage
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields of the message that the value does not show whole, kept as they were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange(Entry):
    """Another model from here on."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingChange(Entry):
    """Another thinking level from here on."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEntry(Entry):
    """Everything before `first_kept` is replaced by the summary in the model's context."""

    summary: str
    first_kept: EntryId
    tokens_before: int
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSummaryEntry(Entry):
    """What happened on a branch that was left."""

    from_id: str
    summary: str
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomEntry(Entry):
    """Data of a program, not in the model's context; ours begin with `tiller.`."""

    custom_type: str
    data: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMessageEntry(Entry):
    """Words of an extension, in the model's context as the user's."""

    custom_type: str
    content: tuple[UserContent, ...]
    display: bool = True
    details: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEntry(Entry):
    """A name for another entry; None clears it."""

    target: EntryId
    label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNameEntry(Entry):
    """The session's title; empty clears it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEditEntry(Entry):
    """Another entry is left out of (None) or replaced in the model's context."""

    target: EntryId
    replacement: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEntry(Entry):
    """An entry type that we do not know, kept as it is."""

    raw: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEntry(Entry):
    """Tokens that were used beside the conversation; counted, and never in the model's context."""

    kind: str
    """What for; any word."""
    provider: str
    model: str
    usage: Usage
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a line lies in its file."""

    offset: int
    size: int
    """Bytes, without the newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdEntry(Entry):
    """An entry whose body stays in the file; the context of the present leaf never holds one.

    What lists, trees and totals show is at hand; the rest is read back with `Recorder.load`.
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
    place: Place


KnownEntry = (
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
WholeEntry = KnownEntry | UnknownEntry
"""An entry with its body."""
AnyEntry = WholeEntry | ColdEntry
