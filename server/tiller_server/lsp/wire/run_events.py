"""The events of a run: turns, messages, thoughts, tools, edits."""

from typing import Literal

from tiller_server.lsp.wire.base import (
    FailFastList,
    NonNegativeNumber,
    SafeCount,
    Seq,
    Uint,
    UncheckedJson,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.blocks import Block
from tiller_server.lsp.wire.changes import ChangeCounts, ChangeSet
from tiller_server.lsp.wire.errors import RunError, RunStatus
from tiller_server.lsp.wire.event_base import (
    ItemEvent,
    MessageEvent,
    RangedItemEvent,
    RunEvent,
    SessionEvent,
    TurnEvent,
)
from tiller_server.lsp.wire.session import (
    CompactionReason,
    Cost,
    DocumentOutcome,
    MessageDelivery,
    MessageRole,
    SpentUsage,
    StopReason,
    ToolStatus,
)

__all__ = [
    "ChangesUpdated",
    "CompactionEnded",
    "CompactionStarted",
    "EditApplied",
    "EditConflict",
    "EditEvent",
    "EditProposed",
    "EditRejected",
    "EditSaved",
    "EditUndone",
    "MessageDelta",
    "MessageEnded",
    "MessageStarted",
    "PlanStep",
    "PlanUpdated",
    "RetryEnded",
    "RetryStarted",
    "RunEnded",
    "RunStarted",
    "SubagentEnded",
    "SubagentStarted",
    "ThoughtDelta",
    "ThoughtEnded",
    "ThoughtStarted",
    "ToolEnded",
    "ToolInputDelta",
    "ToolOutputDelta",
    "ToolRunning",
    "ToolStarted",
    "TurnEnded",
    "TurnStarted",
]


class RunStarted(RunEvent):
    """First event of a run."""

    type: Literal["run.started"] = "run.started"
    message_id: str | None = None
    model: str


class RunEnded(RunEvent):
    """Last event of a run, exactly once."""

    type: Literal["run.ended"] = "run.ended"
    status: RunStatus
    usage: SpentUsage
    cost: Cost | None
    changes: ChangeCounts | ChangeSet
    error: RunError | None = None
    cause: Literal["daemonRestart"] | Vendor | None = None
    """Why the run was interrupted."""
    resumable: bool | None = None
    """Whether `agent/run/retry` continues it."""
    duration_ms: Uint | None = None
    """From its first event, permissions and retries included; left out, as the counts, when its process died."""
    turns: Uint | None = None
    """Answers of the model, failed ones included."""
    tool_calls: Uint | None = None
    """Calls that have a result, those that did not run included."""


class TurnStarted(TurnEvent):
    """A model response with its tool calls begins."""

    type: Literal["turn.started"] = "turn.started"
    index: Uint


class TurnEnded(TurnEvent):
    """The response and the results of its tools are stored."""

    type: Literal["turn.ended"] = "turn.ended"
    index: Uint
    stop_reason: StopReason
    usage: SpentUsage
    duration_ms: Uint | None = None
    """From its first event, permissions included."""


class MessageStarted(MessageEvent):
    """A message begins."""

    type: Literal["message.started"] = "message.started"
    role: MessageRole
    model: str | None = None


class MessageDelta(RangedItemEvent):
    """More text of a message."""

    type: Literal["message.delta"] = "message.delta"
    text: str


class MessageEnded(MessageEvent):
    """Complete message; prompts of the user are messages too."""

    type: Literal["message.ended"] = "message.ended"
    role: MessageRole
    content: FailFastList[Block]
    custom_type: str | None = None
    """Type of a message with the role `custom`."""
    from_: Seq | None = None
    delivery: MessageDelivery | None = None
    message_id: str | None = None
    model: str | None = None
    usage: SpentUsage | None = None
    stop_reason: StopReason | None = None
    entry: str | None = None
    """Its entry in the session."""


class ThoughtStarted(ItemEvent):
    """A thought of the model begins."""

    type: Literal["thought.started"] = "thought.started"


class ThoughtDelta(RangedItemEvent):
    """More text of a thought."""

    type: Literal["thought.delta"] = "thought.delta"
    text: str


class ThoughtEnded(RangedItemEvent):
    """Complete thought, when the answer that contains it is stored."""

    type: Literal["thought.ended"] = "thought.ended"
    text: str


class ToolStarted(ItemEvent):
    """The model calls a tool; the arguments may still be incomplete."""

    type: Literal["tool.started"] = "tool.started"
    call: str
    name: str
    title: str
    input: UncheckedJsonObject | None = None


class ToolInputDelta(RangedItemEvent):
    """More raw text of the arguments."""

    type: Literal["tool.input.delta"] = "tool.input.delta"
    text: str


class ToolRunning(ItemEvent):
    """The call passed every check and runs."""

    type: Literal["tool.running"] = "tool.running"
    title: str | None = None
    input: UncheckedJsonObject


class ToolOutputDelta(RangedItemEvent):
    """More output of a running tool."""

    type: Literal["tool.output.delta"] = "tool.output.delta"
    text: str
    elided: SafeCount | None = None
    """Characters left out in the middle because the client was slow."""


class ToolEnded(RangedItemEvent):
    """Result of a tool call, also of one that was skipped or blocked and never ran."""

    type: Literal["tool.ended"] = "tool.ended"
    call: str
    name: str
    status: ToolStatus
    content: FailFastList[Block]
    details: UncheckedJson
    duration_ms: NonNegativeNumber | None = None
    """Left out: it did not run."""


class EditEvent(SessionEvent):
    """Outcome of an edit."""

    edit: str
    call: str | None = None
    documents: FailFastList[DocumentOutcome]


class EditProposed(EditEvent):
    """An edit waits for the user, because the editor cannot take it."""

    type: Literal["edit.proposed"] = "edit.proposed"


class EditApplied(EditEvent):
    """An edit was applied and verified."""

    type: Literal["edit.applied"] = "edit.applied"


class EditConflict(EditEvent):
    """An edit was not applied because the text had changed, or its outcome is unknown."""

    type: Literal["edit.conflict"] = "edit.conflict"


class EditRejected(EditEvent):
    """The editor or its user refused an edit."""

    type: Literal["edit.rejected"] = "edit.rejected"


class EditUndone(EditEvent):
    """The user undid an edit."""

    type: Literal["edit.undone"] = "edit.undone"


class EditSaved(EditEvent):
    """An edit that was unsaved in the editor is on disk."""

    type: Literal["edit.saved"] = "edit.saved"


class ChangesUpdated(SessionEvent):
    """Size of all changes of the session that wait for a decision."""

    type: Literal["changes.updated"] = "changes.updated"
    files: SafeCount
    additions: SafeCount
    deletions: SafeCount
    unreviewed: SafeCount


class PlanStep(WireModel):
    """Step of a plan."""

    text: str
    status: Literal["pending", "active", "done"] | Vendor


class PlanUpdated(SessionEvent):
    """Complete plan."""

    type: Literal["plan.updated"] = "plan.updated"
    plan: FailFastList[PlanStep]


class CompactionStarted(SessionEvent):
    """The older part of the conversation is being summarised."""

    type: Literal["compaction.started"] = "compaction.started"
    reason: CompactionReason


class CompactionEnded(SessionEvent):
    """Compaction ended, with or without success."""

    type: Literal["compaction.ended"] = "compaction.ended"
    reason: CompactionReason
    summary: str | None = None
    tokens_before: SafeCount
    tokens_after: SafeCount | None = None
    aborted: bool
    will_retry: bool
    error: RunError | None = None


class RetryStarted(RunEvent):
    """A model call failed with an error that may pass; it is repeated after the delay."""

    type: Literal["retry.started"] = "retry.started"
    attempt: Uint
    max_attempts: Uint
    delay_ms: SafeCount
    error: RunError


class RetryEnded(RunEvent):
    """The repeated call succeeded, or the retries were given up."""

    type: Literal["retry.ended"] = "retry.ended"
    success: bool
    attempt: Uint
    error: RunError | None = None


class SubagentStarted(RunEvent):
    """Another agent works for this run."""

    type: Literal["subagent.started"] = "subagent.started"
    subagent: str
    title: str
    status: RunStatus | None = None


class SubagentEnded(RunEvent):
    """The other agent ended."""

    type: Literal["subagent.ended"] = "subagent.ended"
    subagent: str
    title: str
    status: RunStatus | None = None
