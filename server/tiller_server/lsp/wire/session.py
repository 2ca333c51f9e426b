"""A session as clients see it: configuration, usage, items, the snapshot, and the list of sessions."""

from typing import Annotated, Literal

from pydantic import Field, Tag
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    CLEARABLE,
    Count,
    Json,
    Many,
    Moment,
    Number,
    Seq,
    Uint,
    Vendor,
    WireModel,
    by_word,
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
    """What a run may use up; what is left out has no limit."""

    usd: Number | None = None
    tokens: Count | None = None
    turns: Count | None = None
    minutes: Number | None = None


class SessionConfig(WireModel):
    """The choices in force."""

    model: str | None
    """`provider/id`, or null when none is usable."""
    thinking: Thinking
    mode: Mode
    auto_compact: bool
    steering: QueueMode
    follow_up: QueueMode
    budgets: Budgets | None = None
    tools: Many[str]
    offer_branch_summary: bool
    """Whether to ask, before `agent/session/navigate` leaves a branch, if it shall be summed up (`branchSummary.skipPrompt`)."""


class ConfigChange(WireModel):
    """The choices to change; what is left out stays."""

    model: Annotated[str, Field(min_length=1)] | None = None
    thinking: Thinking | None = None
    mode: Mode | None = None
    auto_compact: bool | None = None
    steering: QueueMode | None = None
    follow_up: QueueMode | None = None
    budgets: Annotated[Budgets | None, CLEARABLE] = None
    tools: str | Many[str] | None = None
    """A preset, or names; `+name` and `-name` change the set in force."""


class ContextUse(WireModel):
    """How full the model's window is; null right after a compaction, until the next answer."""

    used: Count | None
    size: Count
    percent: Number | None = None


class TokenUse(WireModel):
    """Tokens by kind; reasoning is a part of out."""

    in_: Count
    out: Count
    cache_read: Count
    cache_write: Count
    reasoning: Count


class Cost(WireModel):
    """Money spent; estimated when the prices come from our own table."""

    amount: Number
    currency: str
    estimated: bool


class BudgetUse(WireModel):
    """How much of a budget is gone."""

    used: Number
    limit: Number


class SpentUsage(WireModel):
    """What one message, turn or run used."""

    context: ContextUse | None = None
    tokens: TokenUse
    cost: Cost | None = None
    budget: BudgetUse | None = None


class Usage(SpentUsage):
    """What the session used so far, and how full its window is."""

    context: ContextUse  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] - frozen, so narrowing is sound


class DocumentOutcome(WireModel):
    """What became of one document of an edit."""

    uri: str
    status: (
        Literal[
            "proposed", "applied", "stale", "refused", "failed", "unverified", "conflict", "undone"
        ]
        | Vendor
    )
    saved: bool | None = None
    """Whether the disk holds it; else it lies unsaved in the editor."""
    version: int | None = None
    sha256: str | None = None
    hunks: Many[str] | None = None
    why: str | None = None


class _ItemBase(WireModel):
    """What every item has: its id, and where it belongs."""

    item: str
    run: str | None = None
    turn: str | None = None
    at: Moment | None = None


class MessageItem(_ItemBase):
    """Something that was said."""

    kind: Literal["message"] = "message"
    role: MessageRole
    content: Many[Block]
    model: str | None = None
    usage: SpentUsage | None = None
    stop_reason: StopReason | None = None
    delivery: MessageDelivery | None = None


class ThoughtItem(_ItemBase):
    """What the model thought aloud."""

    kind: Literal["thought"] = "thought"
    text: str


class ToolItem(_ItemBase):
    """A tool call; without a status it has not ended."""

    kind: Literal["tool"] = "tool"
    call: str
    name: str
    title: str | None = None
    input: Json = None
    status: ToolStatus | None = None
    content: Many[Block] | None = None
    details: Json = None
    duration_ms: Number | None = None


class EditItem(_ItemBase):
    """An edit and what became of it."""

    kind: Literal["edit"] = "edit"
    edit: str
    call: str | None = None
    documents: Many[DocumentOutcome]


class SummaryItem(_ItemBase):
    """What stands for everything that was compacted away."""

    kind: Literal["summary"] = "summary"
    summary: str | None = None
    reason: CompactionReason | None = None
    tokens_before: Count | None = None
    tokens_after: Count | None = None


class EndItem(_ItemBase):
    """The end of a run that was not completed."""

    kind: Literal["end"] = "end"
    status: RunStatus
    resumable: bool
    """Whether `agent/run/retry` goes on with it."""


_AnyItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[ThoughtItem, Tag("thought")]
    | Annotated[ToolItem, Tag("tool")]
    | Annotated[EditItem, Tag("edit")]
    | Annotated[SummaryItem, Tag("summary")]
    | Annotated[EndItem, Tag("end")],
    by_word("kind", "message", "thought", "tool", "edit", "summary", "end"),
]

Item = TypeAliasType("Item", _AnyItem)


class QueueItem(WireModel):
    """Words that wait for their turn."""

    queue_id: str
    delivery: MessageDelivery
    content: Many[Block]
    at: Moment


class Root(WireModel):
    """A folder of the workspace."""

    uri: str
    name: str
    primary: bool
    trusted: bool


class Attendant(WireModel):
    """A client that is attached to the session."""

    role: ClientRole
    name: str


class RunView(WireModel):
    """The run that is going on, with what it brought so far."""

    id: str
    started_at: Moment
    items: Many[Item]


class CompactionActivity(WireModel):
    """A compaction that is going on."""

    reason: CompactionReason


class RetryActivity(WireModel):
    """A wait before the next try."""

    attempt: Uint
    max_attempts: Uint
    delay_ms: Count


class BashActivity(WireModel):
    """A command that the user runs by `agent/bash`."""

    command: str


class Activity(WireModel):
    """What goes on; all left out means nothing does."""

    run: str | None = None
    compaction: CompactionActivity | None = None
    retry: RetryActivity | None = None
    bash: BashActivity | None = None


class CheckpointCount(WireModel):
    """How many checkpoints there are, and the last one's id."""

    count: Count
    latest: str | None = None


class History(WireModel):
    """Where reading backwards starts: a cursor for `agent/session/read`; null when nothing came before."""

    cursor: str | None


class Snapshot(WireModel):
    """A session as it stands after the event `seq`."""

    session: str
    epoch: str
    seq: Seq
    state: SessionState
    activity: Activity | None = None
    title: str | None = None
    run: RunView | None = None
    queue: Many[QueueItem]
    paused: bool | None = None
    """The queue waits for the next prompt or `sendNow`; left out: it does not."""
    pending: Many[PermissionRequest | Question]
    sandbox: Sandbox | None = None
    """How far commands are held in."""
    config: SessionConfig
    usage: Usage
    roots: Many[Root]
    trust: Many[FolderTrust]
    changes: ChangeCounts
    views: Many[StandingView] | None = None
    """What extensions show until something else comes."""
    checkpoints: CheckpointCount
    clients: Many[Attendant]
    history: History


class SessionInfo(WireModel):
    """A session in a list."""

    session: str
    title: str | None = None
    workspace: str
    created: Moment
    modified: Moment
    messages: Count
    model: str | None = None
    parent: str | None = None
    preview: str
