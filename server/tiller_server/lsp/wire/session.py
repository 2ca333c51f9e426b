"""A session as clients see it: configuration, usage, items, the snapshot, and the list of sessions."""

from typing import Annotated, Literal

from pydantic import Field, Tag
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    CLEARABLE,
    FailFastList,
    NonNegativeNumber,
    SafeCount,
    Seq,
    Timestamp,
    Uint,
    UncheckedJson,
    Vendor,
    WireModel,
    tagged_union,
)
from tiller_server.lsp.wire.blocks import Block
from tiller_server.lsp.wire.changes import ChangeCounts
from tiller_server.lsp.wire.errors import RunStatus
from tiller_server.lsp.wire.extensions import StandingView
from tiller_server.lsp.wire.permissions import FolderTrust, PermissionRequest, Question, Sandbox

__all__ = [
    "Activity",
    "Attendant",
    "BashActivity",
    "BudgetUse",
    "Budgets",
    "CheckpointCount",
    "ClientRole",
    "CompactionActivity",
    "CompactionReason",
    "ConfigChange",
    "ContextUse",
    "Cost",
    "DocumentOutcome",
    "EditItem",
    "EndItem",
    "History",
    "Item",
    "MessageDelivery",
    "MessageItem",
    "MessageRole",
    "Mode",
    "QueueItem",
    "QueueMode",
    "RetryActivity",
    "Root",
    "RunView",
    "SessionConfig",
    "SessionInfo",
    "SessionState",
    "Snapshot",
    "SpentUsage",
    "StopReason",
    "SummaryItem",
    "Thinking",
    "ThoughtItem",
    "TokenUse",
    "ToolItem",
    "ToolStatus",
    "Usage",
]

ClientRole = TypeAliasType("ClientRole", Literal["editor", "panel", "observer", "ci"] | Vendor)
CompactionReason = TypeAliasType(
    "CompactionReason", Literal["manual", "threshold", "overflow", "length"] | Vendor
)
MessageDelivery = TypeAliasType(
    "MessageDelivery", Literal["prompt", "steer", "followUp", "nextTurn"] | Vendor
)
MessageRole = TypeAliasType("MessageRole", Literal["user", "assistant", "custom"] | Vendor)
Mode = TypeAliasType("Mode", Literal["ask", "auto", "plan", "yolo"] | Vendor)
QueueMode = TypeAliasType("QueueMode", Literal["all", "one-at-a-time"] | Vendor)
SessionState = TypeAliasType(
    "SessionState",
    (Literal["idle", "running", "requiresAction", "compacting", "retrying", "error"] | Vendor),
)
StopReason = TypeAliasType(
    "StopReason", Literal["stop", "length", "toolUse", "error", "aborted"] | Vendor
)
Thinking = TypeAliasType(
    "Thinking", Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"] | Vendor
)
ToolStatus = TypeAliasType(
    "ToolStatus", Literal["ok", "error", "skipped", "blocked", "cancelled"] | Vendor
)


class Budgets(WireModel):
    """Budgets of a run; an absent budget is no limit."""

    usd: NonNegativeNumber | None = None
    """US dollars."""
    tokens: SafeCount | None = None
    """Tokens."""
    turns: SafeCount | None = None
    """Answers of the model."""
    minutes: NonNegativeNumber | None = None
    """Minutes."""


class SessionConfig(WireModel):
    """Configuration in force."""

    model: str | None
    """`provider/id`; null: no model is usable."""
    thinking: Thinking
    mode: Mode
    auto_compact: bool
    steering: QueueMode
    """Whether waiting steering prompts are delivered together or one by one."""
    follow_up: QueueMode
    """Whether waiting follow-up prompts are delivered together or one by one."""
    budgets: Budgets | None = None
    tools: FailFastList[str]
    """Names of the active tools."""
    offer_branch_summary: bool
    """Whether a client should ask, before `agent/session/navigate` leaves a branch, if the branch is to be summarised (`branchSummary.skipPrompt`)."""


class ConfigChange(WireModel):
    """Change of the configuration; an absent member keeps its value."""

    model: Annotated[str, Field(min_length=1)] | None = None
    """`provider/id`."""
    thinking: Thinking | None = None
    mode: Mode | None = None
    auto_compact: bool | None = None
    steering: QueueMode | None = None
    follow_up: QueueMode | None = None
    budgets: Annotated[Budgets | None, CLEARABLE] = None
    """Only tighter than those of the settings; null: those of the settings."""
    tools: str | FailFastList[str] | None = None
    """Preset, or names; `+name` and `-name` change the set in force."""


class ContextUse(WireModel):
    """Fill of the context window."""

    used: SafeCount | None
    """Tokens; null from a compaction to the next answer."""
    size: SafeCount
    """Tokens of the window."""
    percent: NonNegativeNumber | None = None


class TokenUse(WireModel):
    """Tokens by kind."""

    in_: SafeCount
    out: SafeCount
    cache_read: SafeCount
    cache_write: SafeCount
    reasoning: SafeCount
    """Part of `out`."""


class Cost(WireModel):
    """Money spent."""

    amount: NonNegativeNumber
    currency: str
    estimated: bool
    """Whether it is computed from the server's own price table."""


class BudgetUse(WireModel):
    """Used part of a budget."""

    used: NonNegativeNumber
    limit: NonNegativeNumber


class SpentUsage(WireModel):
    """Usage of one message, turn or run."""

    context: ContextUse | None = None
    tokens: TokenUse
    cost: Cost | None = None
    budget: BudgetUse | None = None


class Usage(SpentUsage):
    """Usage of the session or of a run, with the fill of the context window."""

    context: ContextUse  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] - frozen, so narrowing is sound


class DocumentOutcome(WireModel):
    """Outcome of an edit in one document."""

    uri: str
    status: (
        Literal[
            "proposed", "applied", "stale", "refused", "failed", "unverified", "conflict", "undone"
        ]
        | Vendor
    )
    saved: bool | None = None
    """Whether the text is on disk; else it is unsaved in the editor."""
    version: int | None = None
    sha256: str | None = None
    hunks: FailFastList[str] | None = None
    why: str | None = None


class _ItemBase(WireModel):
    """Fields of every item."""

    item: str
    """Item id."""
    run: str | None = None
    turn: str | None = None
    at: Timestamp | None = None


class MessageItem(_ItemBase):
    """Message."""

    kind: Literal["message"] = "message"
    role: MessageRole
    """`custom`: a message of an extension."""
    content: FailFastList[Block]
    custom_type: str | None = None
    """Type of a message with the role `custom`."""
    model: str | None = None
    usage: SpentUsage | None = None
    stop_reason: StopReason | None = None
    delivery: MessageDelivery | None = None
    message_id: str | None = None
    """Idempotency key of a prompt."""
    entry: str | None = None
    """Its entry in the session."""


class ThoughtItem(_ItemBase):
    """Thought of the model."""

    kind: Literal["thought"] = "thought"
    text: str


class ToolItem(_ItemBase):
    """Tool call; without `status` it has not ended."""

    kind: Literal["tool"] = "tool"
    call: str
    """Id of the call, as the model gave it."""
    name: str
    title: str | None = None
    input: UncheckedJson = None
    status: ToolStatus | None = None
    content: FailFastList[Block] | None = None
    details: UncheckedJson = None
    duration_ms: NonNegativeNumber | None = None


class EditItem(_ItemBase):
    """Edit and its outcome."""

    kind: Literal["edit"] = "edit"
    edit: str
    call: str | None = None
    documents: FailFastList[DocumentOutcome]


class SummaryItem(_ItemBase):
    """Summary in place of what was compacted, or of a branch that was left."""

    kind: Literal["summary"] = "summary"
    summary: str | None = None
    reason: CompactionReason | None = None
    tokens_before: SafeCount | None = None
    tokens_after: SafeCount | None = None


class EndItem(_ItemBase):
    """End of a run that was not completed."""

    kind: Literal["end"] = "end"
    status: RunStatus
    resumable: bool
    """Whether `agent/run/retry` continues it."""


_AnyItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[ThoughtItem, Tag("thought")]
    | Annotated[ToolItem, Tag("tool")]
    | Annotated[EditItem, Tag("edit")]
    | Annotated[SummaryItem, Tag("summary")]
    | Annotated[EndItem, Tag("end")],
    tagged_union("kind", "message", "thought", "tool", "edit", "summary", "end"),
]

Item = TypeAliasType("Item", _AnyItem)


class QueueItem(WireModel):
    """Waiting prompt."""

    queue_id: str
    delivery: MessageDelivery
    content: FailFastList[Block]
    at: Timestamp


class Root(WireModel):
    """Folder of the workspace."""

    uri: str
    name: str
    primary: bool
    trusted: bool


class Attendant(WireModel):
    """Attached client."""

    role: ClientRole
    name: str


class RunView(WireModel):
    """Run that is going on, with its items so far."""

    id: str
    started_at: Timestamp
    items: FailFastList[Item]


class CompactionActivity(WireModel):
    """Compaction that is going on."""

    reason: CompactionReason


class RetryActivity(WireModel):
    """Wait before the next attempt of a model call."""

    attempt: Uint
    max_attempts: Uint
    delay_ms: SafeCount


class BashActivity(WireModel):
    """Command of `agent/bash` that is running."""

    command: str


class Activity(WireModel):
    """Activities of the session; all left out: none."""

    run: str | None = None
    """Run that is going on."""
    compaction: CompactionActivity | None = None
    retry: RetryActivity | None = None
    bash: BashActivity | None = None


class BackgroundInfo(WireModel):
    """Background command."""

    id: str
    """`bg1`, `bg2` …"""
    item: str | None = None
    """Tool call that started it."""
    command: str
    log: str
    """File with all of its output."""
    ports: FailFastList[Uint]
    """TCP ports on which it listens."""


class TaskInfo(WireModel):
    """Task that the agent gave to another agent."""

    id: str
    """`t1`, `t2` …"""
    session: str
    """Session in which it works: subscribe to it to follow it, send prompts to it to steer it."""
    item: str | None = None
    """Tool call that started it."""
    description: str
    """The task in a few words."""
    preset: str
    """Name of the agent that works on it."""
    state: (
        Literal["queued", "running", "completed", "failed", "cancelled", "budget", "lost"] | Vendor
    )
    """State; `lost`: the process that ran it ended, and it can be continued."""
    background: bool
    """The run goes on meanwhile."""
    activity: str
    """Title of the tool call that it makes now; empty: none."""
    turns: SafeCount
    """Answers of its model."""
    tool_calls: SafeCount
    """Tool calls that have a result."""
    tokens: SafeCount
    """Everything that it has used so far."""
    usd: float | None = None
    """Cost in US dollars; left out: nothing yet, or the price is not known."""
    started_ms: SafeCount
    """Unix milliseconds."""
    duration_ms: SafeCount
    """Time since its first start, at its last event."""
    error: str | None = None
    """Why it failed; left out: it did not."""
    worktree: str | None = None
    """Git worktree in which it works or left changes; left out: it works in the workspace."""


class RunParent(WireModel):
    """Conversation that a run of a task belongs to."""

    session: str
    """Session that gave the task."""
    item: str | None = None
    """Its tool call that started the task; left out: not known any more."""


class CheckpointCount(WireModel):
    """Number of checkpoints, and the latest id."""

    count: SafeCount
    latest: str | None = None


class History(WireModel):
    """Start of reading backwards."""

    cursor: str | None
    """Cursor for `before` of `agent/session/read`; null: there is no older item."""


class Snapshot(WireModel):
    """Session as it stands after the event `seq`."""

    session: str
    """Session id."""
    epoch: str
    """Epoch of the event numbers."""
    seq: Seq
    """Last event that the snapshot includes."""
    state: SessionState
    """State."""
    activity: Activity | None = None
    """Activities of the session."""
    title: str | None = None
    """Title."""
    run: RunView | None = None
    """Run that is going on."""
    queue: FailFastList[QueueItem]
    """Waiting prompts."""
    paused: bool | None = None
    """The queue waits for the next prompt or `sendNow`; left out: it does not."""
    pending: FailFastList[PermissionRequest | Question]
    """Permission requests and questions without an answer."""
    sandbox: Sandbox | None = None
    """Containment of commands in force."""
    config: SessionConfig
    """Configuration in force."""
    usage: Usage
    """Usage of the session."""
    roots: FailFastList[Root]
    """Folders of the workspace."""
    trust: FailFastList[FolderTrust]
    """Which folders the user trusts."""
    changes: ChangeCounts
    """Size of all changes of the session."""
    views: FailFastList[StandingView] | None = None
    """Views of extensions in force."""
    checkpoints: CheckpointCount
    """Checkpoints."""
    background: FailFastList[BackgroundInfo] | None = None
    """Background commands that are running, oldest first; left out: none."""
    tasks: FailFastList[TaskInfo] | None = None
    """Tasks that run, were lost or ended last, oldest first; left out: none."""
    clients: FailFastList[Attendant]
    """Attached clients."""
    history: History
    """Where to read what was said before the run of the snapshot."""


class SessionInfo(WireModel):
    """Stored session."""

    session: str
    """Session id."""
    title: str | None = None
    """Title."""
    workspace: str
    """Folder, as a URI."""
    created: Timestamp
    """Time of its creation."""
    modified: Timestamp
    """Time of its last entry."""
    messages: SafeCount
    """Number of messages."""
    model: str | None = None
    """Last model, as `provider/id`."""
    parent: str | None = None
    """Session that it was forked from: the path of its file."""
    preview: str
    """Beginning of the first prompt."""
