"""The entries of a session file, format version 3."""

from typing import Annotated, Final

import msgspec

from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Message,
    StopReason,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)
from agent_core.messages.stored_value import NOTHING, JsonObject, JsonValue, StoredValue, always

FORMAT_VERSION = 3

StoredMessage = UserMessage | AssistantMessage | ToolResultMessage | BashMessage
"""The messages that `message` entries hold; summaries and custom messages have entry types of their own."""


class Header(
    StoredValue,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="session",
    rename={"at_ms": "timestamp", "parent_session": "parentSession"},
):
    """The first line of a session file."""

    version: int = always(default=FORMAT_VERSION)
    id: SessionId
    at_ms: int
    cwd: str
    parent_session: str | None = None
    extra: JsonObject = NOTHING
    """Fields that we do not know, kept."""


class SessionEntry(
    StoredValue,
    frozen=True,
    kw_only=True,
    tag_field="type",
    rename={
        "parent": "parentId",
        "at_ms": "timestamp",
        "first_kept": "firstKeptEntryId",
        "tokens_before": "tokensBefore",
        "from_hook": "fromHook",
        "from_id": "fromId",
        "custom_type": "customType",
        "target": "targetId",
    },
):
    """Fields of every line after the header."""

    id: EntryId
    parent: EntryId | None
    at_ms: int
    line_extra: JsonObject = NOTHING
    """Fields of the line that we do not know, kept."""


class MessageEntry(SessionEntry, frozen=True, kw_only=True, tag="message"):
    """A message."""

    message: StoredMessage
    extra: JsonObject = NOTHING
    """Fields of the message that the value does not show whole, kept as they were read."""


class ModelChange(
    SessionEntry, frozen=True, kw_only=True, tag="model_change", rename={"model": "modelId"}
):
    """Another model from here on."""

    provider: str
    model: str


class ThinkingChange(
    SessionEntry,
    frozen=True,
    kw_only=True,
    tag="thinking_level_change",
    rename={"level": "thinkingLevel"},
):
    """Another thinking level from here on."""

    level: str


class CompactionEntry(SessionEntry, frozen=True, kw_only=True, tag="compaction"):
    """Everything before `first_kept` is replaced by the summary in the model's context."""

    summary: str
    first_kept: EntryId
    tokens_before: int
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


class BranchSummaryEntry(SessionEntry, frozen=True, kw_only=True, tag="branch_summary"):
    """Summary of a branch that was left."""

    from_id: str
    summary: str
    details: JsonValue = None
    usage: Usage | None = None
    from_hook: bool = False


class CustomEntry(SessionEntry, frozen=True, kw_only=True, tag="custom"):
    """Data of a program, not in the model's context; ours begin with `tiller.`."""

    custom_type: str
    data: JsonValue = None


class CustomMessageEntry(SessionEntry, frozen=True, kw_only=True, tag="custom_message"):
    """Words of an extension, in the model's context as the user's."""

    custom_type: str
    content: tuple[UserContent, ...]
    display: bool = always(default=True)
    details: JsonValue = None


class LabelEntry(SessionEntry, frozen=True, kw_only=True, tag="label"):
    """A name for another entry; None clears it."""

    target: EntryId
    label: Annotated[str, msgspec.Meta(min_length=1)] | None = None


REVIEW_TITLE: Final = "Review of "
"""Beginning of the title of a session in which a change is reviewed."""


class SessionNameEntry(SessionEntry, frozen=True, kw_only=True, tag="session_info"):
    """The session's title; empty clears it."""

    name: str
    generated: bool = False
    """A model made the title, not a person."""


class ContextEditEntry(SessionEntry, frozen=True, kw_only=True, tag="context_edit"):
    """Another entry is left out of (None) or replaced in the model's context."""

    target: EntryId
    replacement: JsonValue


class UnknownEntry(SessionEntry, frozen=True, kw_only=True):
    """An entry type that we do not know, kept as it is."""

    raw: JsonObject


class UsageEntry(SessionEntry, frozen=True, kw_only=True, tag="usage"):
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


class CompactionPreparation(Value, frozen=True, kw_only=True):
    """A path of entries cut in two: the messages to summarise, and the first entry of the kept part."""

    messages: tuple[Message, ...]
    """Whole turns to summarise; may be empty when only a turn is split."""
    turn_prefix: tuple[Message, ...] = ()
    """The beginning of the turn that the cut goes through: summarised on its own."""
    first_kept: EntryId
    tokens_before: int
    """Tokens of the context before the compaction, as far as known or estimated."""
    previous_summary: str | None = None
    """The latest compaction's summary, to be brought up to date."""
    read_files: tuple[str, ...] = ()
    """Paths that were read and not changed in what is summarised, and before; sorted."""
    modified_files: tuple[str, ...] = ()
    """Paths that were written or edited; sorted."""
    placed: tuple[tuple[EntryId, Message | None], ...] = ()
    """The path after the previous summary: each entry with its message; None: the model sees nothing of it."""
    cut_points: tuple[EntryId, ...] = ()
    """Entries of `placed` at which it may be cut: each would be the first that is kept."""
    earlier_details: JsonValue = None
    """Details of the previous summary, if a model wrote it."""

    @property
    def kept(self) -> tuple[Message, ...]:
        """The messages that stay as they are."""
        places = (place for place, (entry, _) in enumerate(self.placed) if entry == self.first_kept)
        rest = self.placed[next(places, len(self.placed)) :]
        return tuple(message for _, message in rest if message is not None)
