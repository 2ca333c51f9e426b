"""Every event a session can emit: one frozen class each, one closed union.

A class is the CamelCase of its wire name (`tool.input.delta` is `ToolInputDelta`) and its only definition (decision 0074).
Sequence number and time are the feed's business (`EventEnvelope`).
"""

from pathlib import Path
from typing import Literal

from agent_core.events.values import (
    BackgroundEnder,
    BackgroundInfo,
    ChangeCounts,
    CheckpointInfo,
    CompactionReason,
    Delivery,
    DocumentChange,
    EventValue,
    Failure,
    MessageRole,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    QueueItem,
    RunParent,
    RunStage,
    RunStatus,
    SafeCount,
    SessionConfig,
    SessionState as State,
    TaggedEvent,
    TaskInfo,
    ThinkingLevel,
    ToolStatus,
    UiEvent,
    Uint,
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
from agent_core.messages import StopReason, UserContent


class SessionStateChanged(TaggedEvent, frozen=True, kw_only=True, tag="session.state"):
    """State of the session."""

    state: State


class SessionConfigured(TaggedEvent, frozen=True, kw_only=True, tag="session.config"):
    """Configuration in force."""

    config: SessionConfig


class SessionUsage(TaggedEvent, frozen=True, kw_only=True, tag="session.usage"):
    """Usage of the session."""

    usage: UsageReport


class SessionTitle(TaggedEvent, frozen=True, kw_only=True, tag="session.title"):
    """Title; null removes it."""

    title: str | None


class ModelChanged(TaggedEvent, frozen=True, kw_only=True, tag="model.changed"):
    """Another model or thinking level is in force from the next request."""

    model: str
    thinking: ThinkingLevel
    source: Literal["set", "cycle", "restore"]


class LeafMoved(TaggedEvent, frozen=True, kw_only=True, tag="leaf.moved"):
    """The conversation continues from another entry of the tree."""

    leaf: EntryId | None
    from_: EntryId | None
    """Entry that was left; not an event number."""


class CheckpointCreated(TaggedEvent, frozen=True, kw_only=True, tag="checkpoint.created"):
    """A checkpoint was made."""

    run: RunId | None
    checkpoint: CheckpointInfo


class CheckpointRestored(TaggedEvent, frozen=True, kw_only=True, tag="checkpoint.restored"):
    """A checkpoint was restored."""

    checkpoint: CheckpointInfo


class EntryLabelled(TaggedEvent, frozen=True, kw_only=True, tag="entry.labelled"):
    """Label of an entry; null removes it."""

    entry: EntryId
    label: str | None


class BashStarted(TaggedEvent, frozen=True, kw_only=True, tag="bash.started"):
    """A command of the user begins."""

    command: str


class BashOutput(TaggedEvent, frozen=True, kw_only=True, tag="bash.output"):
    """More output of the user's command."""

    text: str


class BashEnded(TaggedEvent, frozen=True, kw_only=True, tag="bash.ended"):
    """The user's command ended."""

    exit_code: int | None  # None: it was cancelled, or killed by a signal.
    output: str  # Its end, as it is kept.
    cancelled: bool
    truncated: bool
    full_output: str | None  # File that holds all of it, when it is more than `output`.


class BackgroundStarted(TaggedEvent, frozen=True, kw_only=True, tag="background.started"):
    """A command began to run in the background; it goes on when the run is over."""

    run: RunId | None
    command: BackgroundInfo


class BackgroundListening(TaggedEvent, frozen=True, kw_only=True, tag="background.listening"):
    """A background command listens on other ports than before."""

    id: str
    ports: tuple[int, ...]
    """All TCP ports on which it listens now."""


class BackgroundEnded(TaggedEvent, frozen=True, kw_only=True, tag="background.ended"):
    """A background command ended."""

    id: str
    exit_code: int | None
    """Null: a signal ended it."""
    signal: int | None
    by: BackgroundEnder
    """Author of the end."""


class TaskCreated(TaggedEvent, frozen=True, kw_only=True, tag="task.created"):
    """A task was given to another agent; it runs, or waits until another task ends."""

    run: RunId | None
    task: TaskInfo


class TaskUpdated(TaggedEvent, frozen=True, kw_only=True, tag="task.updated"):
    """A task has begun to run, makes another tool call, or works in the background from now on."""

    task: TaskInfo


class TaskEnded(TaggedEvent, frozen=True, kw_only=True, tag="task.ended"):
    """A task has its result, which is in the session file. Published exactly once for each start."""

    task: TaskInfo
    text: str
    """How its report begins; empty: it has none."""


class Notice(TaggedEvent, frozen=True, kw_only=True, tag="notice"):
    """Message for the user; nothing failed."""

    level: Literal["info", "warning"]
    text: str


class ErrorRaised(TaggedEvent, frozen=True, kw_only=True, tag="error"):
    """Error that ends no run."""

    run: RunId | None
    error: Failure


class ExtensionError(TaggedEvent, frozen=True, kw_only=True, tag="extension.error"):
    """An extension failed or took too long; the run continues without it."""

    extension: str
    event: str
    error: str
    stack: str | None = None
    """Stack in the extension's code."""


class Attendant(EventValue, frozen=True, kw_only=True):
    """A client that is attached to the session."""

    role: str
    name: str


class SessionClients(TaggedEvent, frozen=True, kw_only=True, tag="session.clients"):
    """Attached clients."""

    clients: tuple[Attendant, ...]


class WorkspaceRoot(EventValue, frozen=True, kw_only=True):
    """A folder of the workspace."""

    folder: Path
    name: str
    primary: bool
    trusted: bool


class SessionRoots(TaggedEvent, frozen=True, kw_only=True, tag="session.roots"):
    """Folders of the workspace."""

    roots: tuple[WorkspaceRoot, ...]


class FolderTrust(EventValue, frozen=True, kw_only=True):
    """Whether the user trusts a folder as it is now."""

    folder: Path
    trusted: bool


class SessionTrust(TaggedEvent, frozen=True, kw_only=True, tag="session.trust"):
    """Which folders the user trusts."""

    items: tuple[FolderTrust, ...]


class RunStarted(TaggedEvent, frozen=True, kw_only=True, tag="run.started"):
    """First event of a run."""

    run: RunId
    message_id: MessageId | None
    model: str
    parent: RunParent | None = None


class RunStageStarted(TaggedEvent, frozen=True, kw_only=True, tag="run.stage"):
    """A stage of a run begins; the stage before it is over. Each run has them in this order, and `execute` at most once.

    An error in `prepare` ends the run before its first request to a model; one in `execute` ends it with what has been
    done; one in `summarize` is a notice; in `persist` the entries stay in memory and are written again.
    """

    run: RunId
    stage: RunStage


class RunEnded(TaggedEvent, frozen=True, kw_only=True, tag="run.ended"):
    """Last event of a run, exactly once."""

    run: RunId
    status: RunStatus
    usage: UsageReport
    changes: ChangeCounts
    error: Failure | None = None
    stage: RunStage | None = None
    """Stage in which the error occurred."""
    cause: Literal["daemonRestart"] | None = None
    """Why the run was interrupted."""
    resumable: bool | None = None
    """Whether `agent/run/retry` continues it."""
    duration_ms: Uint | None = None
    """From its first event, permissions and retries included; left out, as the counts, when its process died."""
    turns: Uint | None = None
    """Answers of the model, failed ones included."""
    tool_calls: Uint | None = None
    """Calls that have a result, those that did not run included."""
    parent: RunParent | None = None


class TurnStarted(TaggedEvent, frozen=True, kw_only=True, tag="turn.started"):
    """A model response with its tool calls begins."""

    run: RunId
    turn: TurnId
    index: Uint


class TurnEnded(TaggedEvent, frozen=True, kw_only=True, tag="turn.ended"):
    """The response and the results of its tools are stored."""

    run: RunId
    turn: TurnId
    index: Uint
    stop_reason: StopReason
    usage: UsageReport
    duration_ms: Uint | None = None
    """From its first event, permissions included."""


class MessageStarted(TaggedEvent, frozen=True, kw_only=True, tag="message.started"):
    """A message begins."""

    run: RunId | None
    """None: a program's words, added while nothing ran."""
    turn: TurnId | None
    item: ItemId
    role: MessageRole
    model: str | None = None


class MessageDelta(TaggedEvent, frozen=True, kw_only=True, tag="message.delta"):
    """More text of a message."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class MessageEnded(TaggedEvent, frozen=True, kw_only=True, tag="message.ended"):
    """Complete message; prompts of the user are messages too."""

    run: RunId | None
    turn: TurnId | None
    item: ItemId
    role: MessageRole
    content: tuple[UserContent, ...]
    custom_type: str | None = None
    """Type of a message with the role `custom`."""
    delivery: Delivery | None = None
    message_id: MessageId | None = None
    model: str | None = None
    usage: UsageReport | None = None
    stop_reason: StopReason | None = None
    entry: EntryId | None = None
    """Its entry in the session."""


class ThoughtStarted(TaggedEvent, frozen=True, kw_only=True, tag="thought.started"):
    """A thought of the model begins."""

    run: RunId
    turn: TurnId | None
    item: ItemId


class ThoughtDelta(TaggedEvent, frozen=True, kw_only=True, tag="thought.delta"):
    """More text of a thought."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class ThoughtEnded(TaggedEvent, frozen=True, kw_only=True, tag="thought.ended"):
    """Complete thought, when the answer that contains it is stored."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str


class ToolStarted(TaggedEvent, frozen=True, kw_only=True, tag="tool.started"):
    """The model calls a tool; the arguments may still be incomplete."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    call: ToolCallId
    name: str
    title: str


class ToolInputDelta(TaggedEvent, frozen=True, kw_only=True, tag="tool.input.delta"):
    """More raw text of the arguments; perhaps none, when only `partial` is new."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str
    partial: JsonObject | None = None
    """All arguments so far, for display: on some deltas only, replaces earlier ones, at most 8 KiB of JSON.

    A text longer than 2,048 characters is its beginning, `…` and its end; where the rest is too large, lists keep their
    end. It is redacted, and may lag behind the text; `input` of `tool.running` has the arguments.
    """


class ToolRunning(TaggedEvent, frozen=True, kw_only=True, tag="tool.running"):
    """The call passed every check and runs."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    title: str
    input: JsonObject
    details: JsonObject | None = None
    """Details that are there before it runs, such as the view that an extension's tool has of its arguments."""


class ToolOutputDelta(TaggedEvent, frozen=True, kw_only=True, tag="tool.output.delta"):
    """More output of a running tool."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    text: str
    elided: SafeCount | None = None
    """Characters left out in the middle because the client was slow."""


class ToolEnded(TaggedEvent, frozen=True, kw_only=True, tag="tool.ended"):
    """Result of a tool call, also of one that was skipped or blocked and never ran."""

    run: RunId
    turn: TurnId | None
    item: ItemId
    call: ToolCallId
    name: str
    status: ToolStatus
    content: tuple[UserContent, ...]
    details: JsonValue
    duration_ms: int | None
    """Left out: it did not run."""


class _Edited(TaggedEvent, frozen=True, kw_only=True):
    run: RunId | None
    """None: the run is over, or there was none."""
    edit: str
    call: ToolCallId | None
    documents: tuple[DocumentChange, ...]


class EditApplied(_Edited, frozen=True, kw_only=True, tag="edit.applied"):
    """An edit was applied and verified."""


class EditConflict(_Edited, frozen=True, kw_only=True, tag="edit.conflict"):
    """An edit was not applied because the text had changed, or its outcome is unknown."""


class EditRejected(_Edited, frozen=True, kw_only=True, tag="edit.rejected"):
    """The editor or its user refused an edit."""


class EditProposed(_Edited, frozen=True, kw_only=True, tag="edit.proposed"):
    """An edit waits for the user, because the editor cannot take it."""


class EditUndone(_Edited, frozen=True, kw_only=True, tag="edit.undone"):
    """The user undid an edit."""


class EditSaved(_Edited, frozen=True, kw_only=True, tag="edit.saved"):
    """An edit that was unsaved in the editor is on disk."""


class ChangesUpdated(TaggedEvent, frozen=True, kw_only=True, tag="changes.updated"):
    """Size of all changes of the session that wait for a decision."""

    run: RunId | None
    """Run that made the change; None: the change was made outside of any run."""
    files: SafeCount
    additions: SafeCount
    deletions: SafeCount
    unreviewed: SafeCount


class QueueChanged(TaggedEvent, frozen=True, kw_only=True, tag="queue.changed"):
    """Prompts were queued, delivered, returned or dropped. Images that the model is not sent pause the queue, with a `notice`."""

    queue: tuple[QueueItem, ...]
    paused: bool = False
    """The queue waits for the next prompt or `sendNow`."""


class CompactionStarted(TaggedEvent, frozen=True, kw_only=True, tag="compaction.started"):
    """The older part of the conversation is being summarised."""

    run: RunId | None
    reason: CompactionReason


class CompactionEnded(TaggedEvent, frozen=True, kw_only=True, tag="compaction.ended"):
    """Compaction ended, with or without success."""

    run: RunId | None
    reason: CompactionReason
    summary: str | None
    tokens_before: SafeCount
    tokens_after: SafeCount | None
    aborted: bool
    will_retry: bool
    error: Failure | None = None


class RetryStarted(TaggedEvent, frozen=True, kw_only=True, tag="retry.started"):
    """A model call failed with an error that may pass; it is repeated after the delay."""

    run: RunId
    attempt: Uint
    max_attempts: Uint
    delay_ms: SafeCount
    error: Failure


class RetryEnded(TaggedEvent, frozen=True, kw_only=True, tag="retry.ended"):
    """The repeated call succeeded, or the retries were given up."""

    run: RunId
    success: bool
    attempt: Uint
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
    | RunStageStarted
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
    | BackgroundStarted
    | BackgroundListening
    | BackgroundEnded
    | TaskCreated
    | TaskUpdated
    | TaskEnded
    | Notice
    | ErrorRaised
    | ExtensionError
    | UiEvent
)

Delta = MessageDelta | ThoughtDelta | ToolInputDelta | ToolOutputDelta | BashOutput
"""Events that append: merged without loss, and not written to disk."""
