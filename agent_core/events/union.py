"""Every event a session can emit: one frozen class each, one closed union.

A class is the CamelCase of its wire name (`tool.input.delta` is `ToolInputDelta`). Sequence number and time are the
feed's business (`EventEnvelope`).
"""

from typing import Literal

from agent_core.events.permissions import PermissionRequested, PermissionResolved
from agent_core.events.questions import QuestionRequested, QuestionResolved
from agent_core.events.session_events import (
    BashEnded,
    BashOutput,
    BashStarted,
    CheckpointCreated,
    CheckpointRestored,
    EntryLabelled,
    ErrorRaised,
    ExtensionError,
    LeafMoved,
    ModelChanged,
    Notice,
    SessionClients,
    SessionConfigured,
    SessionRoots,
    SessionStateChanged,
    SessionTitle,
    SessionTrust,
    SessionUsage,
)
from agent_core.events.ui import UiEvent
from agent_core.events.values import (
    ChangeCounts,
    CompactionReason,
    Delivery,
    DocumentChange,
    Failure,
    QueueItem,
    RunStatus,
    ToolStatus,
    UsageReport,
)
from agent_core.kernel import (
    EntryId,
    ItemId,
    JsonObject,
    JsonValue,
    MessageId,
    RunId,
    ToolCallId,
    TurnId,
)
from agent_core.kernel.values import Value
from agent_core.messages import UserContent


class RunStarted(Value, frozen=True, kw_only=True):
    """First of a run."""

    run: RunId
    message_id: MessageId | None
    model: str


class RunEnded(Value, frozen=True, kw_only=True):
    """Last of a run, exactly once, on every path out."""

    run: RunId
    status: RunStatus
    usage: UsageReport
    changes: ChangeCounts
    error: Failure | None = None
    cause: Literal["daemonRestart"] | None = None
    """Why a run was interrupted."""
    resumable: bool | None = None
    """Whether an interrupted run can be retried."""
    duration_ms: int | None = None
    """From its first event, permissions and retries included; None, as the counts: its process died."""
    turns: int | None = None
    """Answers of the model, those that failed included."""
    tool_calls: int | None = None
    """Calls that have a result, those that were not run included."""


class TurnStarted(Value, frozen=True, kw_only=True):
    """One model response with its tool calls begins."""

    run: RunId
    turn: TurnId
    index: int


class TurnEnded(Value, frozen=True, kw_only=True):
    """The response and the results of its tools are in the transcript."""

    run: RunId
    turn: TurnId
    index: int
    stop_reason: str
    usage: UsageReport
    duration_ms: int | None = None
    """From its first event, permissions included."""


class MessageStarted(Value, frozen=True, kw_only=True):
    """Start of a message of the user, the model or a program."""

    run: RunId | None
    """None: a program's words, added while nothing ran."""
    turn: TurnId | None
    item: ItemId
    role: Literal["user", "assistant", "custom"]
    model: str | None = None


class MessageDelta(Value, frozen=True, kw_only=True):
    """More words of a message."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class MessageEnded(Value, frozen=True, kw_only=True):
    """A message as a whole; the authority over its deltas."""

    run: RunId | None
    turn: TurnId | None
    item: ItemId
    role: Literal["user", "assistant", "custom"]
    content: tuple[UserContent, ...]
    custom_type: str | None = None
    """Whose words they are, with the role `custom`."""
    delivery: Delivery | None = None
    message_id: MessageId | None = None
    model: str | None = None
    usage: UsageReport | None = None
    stop_reason: str | None = None
    entry: EntryId | None = None


class ThoughtStarted(Value, frozen=True, kw_only=True):
    """The model begins to think aloud."""

    run: RunId
    turn: TurnId | None
    item: ItemId


class ThoughtDelta(Value, frozen=True, kw_only=True):
    """More of a thought."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class ThoughtEnded(Value, frozen=True, kw_only=True):
    """A thought as a whole, when the answer that it is part of is in the session."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class ToolStarted(Value, frozen=True, kw_only=True):
    """The model asks for a tool; its arguments may still be streaming."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    call: ToolCallId
    name: str
    title: str


class ToolInputDelta(Value, frozen=True, kw_only=True):
    """More raw argument text."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class ToolRunning(Value, frozen=True, kw_only=True):
    """The call passed every check and runs now."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    title: str
    input: JsonObject


class ToolOutputDelta(Value, frozen=True, kw_only=True):
    """More output of a running tool."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str
    elided: int | None = None
    """How many characters are missing in the middle: the reader was too slow."""


class ToolEnded(Value, frozen=True, kw_only=True):
    """A tool call has its result, exactly once, also when it was skipped or blocked."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    call: ToolCallId
    name: str
    status: ToolStatus
    content: tuple[UserContent, ...]
    details: JsonValue
    duration_ms: int | None
    """None: it did not run."""


class _Edited(Value, frozen=True, kw_only=True):
    run: RunId | None
    """None: the run is over, or there was none."""
    edit: str
    call: ToolCallId | None
    documents: tuple[DocumentChange, ...]


class EditApplied(_Edited, frozen=True, kw_only=True):
    """An edit landed and was verified."""


class EditConflict(_Edited, frozen=True, kw_only=True):
    """An edit did not land: the text had changed, or nobody can say what happened to it."""


class EditRejected(_Edited, frozen=True, kw_only=True):
    """The editor or its user refused an edit."""


class EditProposed(_Edited, frozen=True, kw_only=True):
    """An edit waits for the user, because the editor cannot take it. Nothing was written."""


class EditUndone(_Edited, frozen=True, kw_only=True):
    """The user undid an edit in their editor."""


class EditSaved(_Edited, frozen=True, kw_only=True):
    """An edit that lay unsaved in an editor is on the disk now."""


class ChangesUpdated(Value, frozen=True, kw_only=True):
    """Counts of all pending changes of the session, which wait for review."""

    run: RunId | None
    """Run that made the change; None: the change was made outside of any run."""
    files: int
    additions: int
    deletions: int
    unreviewed: int


class QueueChanged(Value, frozen=True, kw_only=True):
    """Words were queued, delivered, returned or dropped."""

    queue: tuple[QueueItem, ...]
    paused: bool = False
    """The queue waits for the next prompt: a run was cancelled while words waited."""


class CompactionStarted(Value, frozen=True, kw_only=True):
    """The older part of the conversation is being summarised."""

    run: RunId | None
    reason: CompactionReason


class CompactionEnded(Value, frozen=True, kw_only=True):
    """Compaction is over, one way or another."""

    run: RunId | None
    reason: CompactionReason
    summary: str | None
    tokens_before: int
    tokens_after: int | None
    aborted: bool
    will_retry: bool
    error: Failure | None = None


class RetryStarted(Value, frozen=True, kw_only=True):
    """A model call failed in a way that may pass; it is tried again after the delay."""

    run: RunId
    attempt: int
    max_attempts: int
    delay_ms: int
    error: Failure


class RetryEnded(Value, frozen=True, kw_only=True):
    """Retrying succeeded or was given up."""

    run: RunId
    success: bool
    attempt: int
    error: Failure | None = None


Event = (
    SessionStateChanged
    | SessionConfigured
    | SessionRoots
    | SessionUsage
    | SessionTitle
    | SessionClients
    | SessionTrust
    | RunStarted
    | RunEnded
    | TurnStarted
    | TurnEnded
    | MessageStarted
    | MessageDelta
    | MessageEnded
    | ThoughtStarted
    | ThoughtDelta
    | ThoughtEnded
    | ToolStarted
    | ToolInputDelta
    | ToolRunning
    | ToolOutputDelta
    | ToolEnded
    | EditApplied
    | EditConflict
    | EditRejected
    | EditProposed
    | EditUndone
    | EditSaved
    | ChangesUpdated
    | QueueChanged
    | PermissionRequested
    | PermissionResolved
    | QuestionRequested
    | QuestionResolved
    | CompactionStarted
    | CompactionEnded
    | RetryStarted
    | RetryEnded
    | ModelChanged
    | LeafMoved
    | CheckpointCreated
    | CheckpointRestored
    | EntryLabelled
    | BashStarted
    | BashOutput
    | BashEnded
    | Notice
    | ErrorRaised
    | ExtensionError
    | UiEvent
)

Delta = MessageDelta | ThoughtDelta | ToolInputDelta | ToolOutputDelta | BashOutput
"""Events that append: merged without loss, and not written to disk."""
