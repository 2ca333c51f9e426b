"""The values inside events and snapshots that are not messages."""

from pathlib import Path
from typing import Literal

from agent_core.kernel import JsonValue, QueueId, RunId
from agent_core.kernel.values import Value
from agent_core.messages import Usage, UserContent

SessionState = Literal["idle", "running", "requiresAction", "compacting", "retrying", "error"]
RunStatus = Literal["completed", "cancelled", "failed", "interrupted", "budget", "refused"]
ToolStatus = Literal["ok", "error", "skipped", "blocked", "cancelled"]
Delivery = Literal["prompt", "steer", "followUp", "nextTurn"]
"""How words reach the model: at the start of a run, inside it, after it, or beside the user's next words."""
InputSource = Literal["person", "program"]
"""Source of input to the model: a user of a client, or a program, such as an extension, in place of the user."""
CompactionReason = Literal["manual", "threshold", "overflow", "length"]
QueueMode = Literal["one-at-a-time", "all"]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
PermissionMode = Literal["plan", "ask", "auto", "yolo"]


class InjectedBy(Value, frozen=True, kw_only=True):
    """Marker of input from a program rather than the user."""

    custom_type: str
    """Chosen by the program, so that it knows its words again."""
    display: bool = True
    """Whether people see them."""
    details: JsonValue = None
    """For the program's front end; the model never sees it."""


class QueueItem(Value, frozen=True, kw_only=True):
    """Words that wait for their turn."""

    queue_id: QueueId
    delivery: Delivery
    content: tuple[UserContent, ...]
    at_ms: int
    custom: InjectedBy | None = None
    """Set when a program said them in its own name."""
    source: InputSource = "person"


class Budgets(Value, frozen=True, kw_only=True):
    """Limits of one run; None: no limit."""

    usd: float | None = None
    tokens: int | None = None
    turns: int | None = None
    minutes: float | None = None


class SessionConfig(Value, frozen=True, kw_only=True):
    """Configuration in force for the next request."""

    model: str | None
    """`provider/id`; None: no usable model."""
    thinking: ThinkingLevel
    mode: PermissionMode
    auto_compact: bool
    steering: QueueMode
    follow_up: QueueMode
    tools: tuple[str, ...]
    budgets: Budgets | None = None
    """None: a run has no limit."""
    offer_branch_summary: bool = True
    """For front ends: whether to ask, before a branch is left, if it shall be summed up."""


class UsageReport(Value, frozen=True, kw_only=True):
    """Tokens and money, beside how full the context window is."""

    tokens: Usage
    context_used: int | None
    """None: unknown, as right after a compaction until the next answer."""
    context_size: int
    """0: the model does not say."""


class ChangeCounts(Value, frozen=True, kw_only=True):
    """How much a run or session has changed."""

    files: int = 0
    additions: int = 0
    deletions: int = 0
    unreviewed: int = 0


class CheckpointInfo(Value, frozen=True, kw_only=True):
    """A state to which files and conversation can be taken back."""

    checkpoint: str
    run: RunId | None
    """The run before whose first change it lies; None: a restore, which it takes back."""
    at_ms: int
    files: int
    """How many files have been changed from there to the next one, as far as that is known when it is told."""


class DocumentChange(Value, frozen=True, kw_only=True):
    """One file of an edit, and what became of it."""

    path: Path
    status: Literal["proposed", "applied", "stale", "refused", "failed", "unverified", "undone"]
    saved: bool = False
    """Whether the disk holds it; else it lies unsaved in the editor."""
    version: int | None = None
    """The editor's version, for open documents."""
    sha256: str | None = None
    hunks: tuple[str, ...] | None = None
    """Those that it is about."""
    why: str | None = None


class Failure(Value, frozen=True, kw_only=True):
    """Why a run, retry or compaction failed, for people and for programs."""

    kind: str
    """A kind of the wire's closed list."""
    message: str
    retryable: bool = False
    http_status: int | None = None
    retry_after_ms: int | None = None


class RunResult(Value, frozen=True, kw_only=True):
    """Result of a run."""

    run: RunId
    status: RunStatus
    text: str
    """The last words of the model; empty when it said nothing."""
    usage: UsageReport
    changes: ChangeCounts
    error: Failure | None = None
