"""Methods that start, steer, stop and report runs."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    SafeCount,
    Seq,
    SessionParams,
    Token,
    Uint,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.blocks import Block, ContentBlocks, Diagnostic, Range
from tiller_server.lsp.wire.changes import ChangeSet
from tiller_server.lsp.wire.errors import KilledProcess, RunError, RunStatus
from tiller_server.lsp.wire.method import Method, notification, request
from tiller_server.lsp.wire.session import Cost, QueueItem, TaskInfo, Usage

__all__ = [
    "BASH",
    "COMPACT",
    "EDITOR_CONTEXT",
    "FOLLOW_UP",
    "PROMPT",
    "QUEUE_UPDATE",
    "REVIEW",
    "RUN_CANCEL",
    "RUN_RETRY",
    "SERVED",
    "STEER",
    "BashParams",
    "BashResult",
    "CompactParams",
    "CompactResult",
    "EditorContext",
    "EditorFocus",
    "Finding",
    "FollowUpParams",
    "IfIdle",
    "PromptAccepted",
    "PromptParams",
    "PromptResult",
    "QueueOp",
    "QueueUpdateParams",
    "QueueUpdateResult",
    "ReviewParams",
    "RunCancelParams",
    "RunCancelResult",
    "RunResult",
    "RunRetryParams",
    "SteerParams",
]

IfIdle = TypeAliasType("IfIdle", Literal["start", "hold", "reject"] | Vendor)


class EditorFocus(WireModel):
    """Focused document of the editor."""

    uri: str
    version: int
    selections: FailFastList[Range]
    """Selections, the primary one first."""
    visible: FailFastList[Range]
    """Visible ranges."""
    mode: Literal["normal", "insert"] | Vendor | None = None
    """`insert`: the user types, and edits of this document wait."""


class EditorContext(WireModel):
    """Report the state of the editor: focused document, open and unsaved documents."""

    focus: EditorFocus | None = None
    """Focused document."""
    open: FailFastList[str]
    """Open documents, as URIs."""
    dirty: FailFastList[str] | None = None
    """Documents with unsaved text, as URIs."""


class PromptParams(SessionParams):
    """Send a prompt; acknowledged at once, or with `wait` answered at the end of the run."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    """Idempotency key of the client; left out: the server makes one."""
    content: ContentBlocks
    """Content, 1 to 1,000 blocks. A string is read as one text block."""
    context: EditorContext | None = None
    """State of the editor for this prompt, in place of the last `agent/editorContext`; one that names nothing sends none."""
    delivery: Literal["auto", "steer", "followUp", "reject"] | Vendor | None = None
    """`auto` (default), `steer`, `followUp` or `reject`; see the table."""
    if_idle: IfIdle | None = None
    """Behaviour when no run is going on: `start` (default), `hold` or `reject`."""
    expected_run: str | None = None
    """Refuse the prompt if another run, or none, is going on."""
    wait: bool | None = None
    """Answer with the `RunResult` when the run has ended."""
    work_done_token: Token | None = None
    """With `wait`: token for work-done progress."""
    partial_result_token: Token | None = None
    """With `wait`: token for frames with the events of this run."""


class SteerParams(SessionParams):
    """Send a prompt to the run that is going on; the same as `agent/prompt` with `delivery: "steer"`."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    """Idempotency key of the client; left out: the server makes one."""
    content: ContentBlocks
    """Content, 1 to 1,000 blocks. A string is read as one text block."""
    expected_run: str | None = None
    """Refuse the prompt if another run, or none, is going on."""
    if_idle: IfIdle | None = None
    """Behaviour when no run is going on: `start` (default), `hold` or `reject`."""


class FollowUpParams(SessionParams):
    """Queue a prompt until the run would end; the same as `agent/prompt` with `delivery: "followUp"`."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    """Idempotency key of the client; left out: the server makes one."""
    content: ContentBlocks
    """Content, 1 to 1,000 blocks. A string is read as one text block."""


class PromptAccepted(WireModel):
    """Acknowledgement of a prompt, which is stored."""

    accepted: Literal["started", "steered", "queued", "held", "duplicate", "handled"] | Vendor
    """How the prompt is handled; the section of `agent/prompt` lists the values."""
    run: str | None = None
    """Run that it began or joined."""
    queue_id: str | None = None
    """Id in the queue, for `agent/queue/update`."""
    message_id: str | None = None
    """The `messageId` of the request, or the one that the server made."""
    seq: Seq
    """Last event of the session when the prompt was stored."""


class Finding(WireModel):
    """Finding of a review."""

    uri: str
    diagnostic: Diagnostic


class RunResult(WireModel):
    """End of a run."""

    run: str
    """Run id."""
    status: RunStatus
    """How it ended."""
    message: str | None = None
    """Last message of the model."""
    usage: Usage
    """Usage of the run."""
    cost: Cost | None = None
    """Cost of the run, when the price of the model is known; the same as `usage.cost`."""
    changes: ChangeSet
    """Changes of the run."""
    findings: FailFastList[Finding] | None = None
    """Findings, of `agent/review` alone."""
    error: RunError | None = None
    """Error, when the run failed."""


PromptResult: TypeAlias = PromptAccepted | RunResult
"""The acknowledgement, or with `wait` how the run ended."""


class QueueOp(WireModel):
    """Operation on the queue."""

    op: Literal["remove", "replace", "move", "sendNow", "steer"] | Vendor
    queue_id: str
    content: ContentBlocks | None = None
    """New content, for `replace`."""
    index: Uint | None = None
    """New place, for `move`, from 0, among prompts of the same delivery."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "QueueOp":
        if self.op == "replace" and self.content is None:
            raise PydanticCustomError("shape", "have content to replace")
        if self.op == "move" and self.index is None:
            raise PydanticCustomError("shape", "have an index to move to")
        return self


class QueueUpdateParams(SessionParams):
    """Change waiting prompts: all operations or none."""

    ops: FailFastList[QueueOp]
    """Operations, in order."""
    if_seq: Seq | None = None
    """Refuse when a `queue.changed` has a higher `seq`."""


class QueueUpdateResult(WireModel):
    """The queue afterwards."""

    queue: FailFastList[QueueItem]
    """Waiting prompts."""
    seq: Seq | None = None
    """The `queue.changed` event of this change, for the next `ifSeq`."""


class RunCancelParams(SessionParams):
    """Cancel a run, one tool call of it, or everything in the session."""

    run: str | None = None
    """Cancel only this run; a later run is not touched."""
    scope: Literal["run", "item", "session"] | Vendor | None = None
    """`run` (default); `item`: one tool call; `session`: also compaction, retry waits and the user's command."""
    item: str | None = None
    """Item of the tool call, required with `scope: "item"`."""
    queue: Literal["keep", "return", "drop"] | Vendor | None = None
    """Waiting prompts: `keep` (default) keeps and pauses them, `return` gives them back in `returned`, `drop` deletes them."""
    grace_ms: SafeCount | None = None
    """Time between the request to end and the kill of a process."""

    @model_validator(mode="after")
    def _names_its_item(self) -> "RunCancelParams":
        if self.scope == "item" and self.item is None:
            raise PydanticCustomError("shape", 'have an item for scope "item"')
        return self


class RunCancelResult(WireModel):
    """Outcome of a cancel."""

    status: Literal["cancelled", "alreadyEnded"] | Vendor
    """`alreadyEnded`: there was nothing to cancel."""
    seq: Seq
    """Last event of what was cancelled."""
    killed: FailFastList[KilledProcess]
    """Processes that were ended."""
    survivors: FailFastList[KilledProcess]
    """Processes that could not be ended."""
    returned: FailFastList[FailFastList[Block]]
    """Content of each waiting prompt, with `queue: "return"`."""


class RunRetryParams(SessionParams):
    """Continue a run that failed or was interrupted, without a new prompt."""

    run: str
    """Newest run of the branch."""


class CompactParams(SessionParams):
    """Summarise the older part of the conversation; cancels a run that is going on."""

    instructions: str | None = None
    """Instructions for the summary."""
    keep_recent_tokens: SafeCount | None = None
    """How much of the newest part stays as it is; left out: as in the settings."""


class CompactResult(WireModel):
    """Compaction that has begun, or why there is none."""

    compaction: str | None
    """Id of the compaction; null: there is nothing to compact."""
    seq: Seq | None = None
    """Last event of the session when it began."""
    why: str | None = None
    """Why there is nothing to compact."""
    cancelled_run: str | None = None
    """Run that was cancelled first."""


class BashParams(SessionParams):
    """Run a shell command of the user in the workspace."""

    command: Annotated[str, Field(min_length=1)]
    """Shell line."""
    exclude_from_context: bool | None = None
    """True: the model does not see it."""
    partial_result_token: Token | None = None
    """Token for frames with its `bash.*` events."""


class BashResult(WireModel):
    """Output of a command."""

    output: str
    """End of the output."""
    exit_code: int | None
    """Null: it was cancelled, ended for time, or killed by a signal."""
    cancelled: bool
    """Whether it was cancelled."""
    truncated: bool
    """Whether `output` is not all of it."""
    full_output: str | None = None
    """File with the whole output, when `output` is cut."""


class PlanRespondParams(SessionParams):
    """Answer the plan that waits for approval."""

    revision: Annotated[int, Field(ge=1)] | None = None
    """Revision that is meant: how many plans the conversation has up to it; left out: whatever has this hash."""
    sha256: Annotated[str, Field(min_length=12)]
    """Hash of its text, or at least the first 12 digits."""
    answer: Literal["approve", "approveAuto", "change", "reject"]
    """`approve` carries it out in mode `ask`, `approveAuto` in mode `auto`; `change` and `reject` keep the mode."""
    text: str | None = None
    """For `change`: the wishes of the user. For an approval: the plan as the user edited it."""


class PlanRespondResult(WireModel):
    """Result of an answer to a plan."""

    run: str | None = None
    """Run that begins; left out: none."""


class BackgroundMoveParams(SessionParams):
    """Move the running command or task of a tool call to the background."""

    item: str | None = None
    """Tool call; left out: the newest that runs a command or a task."""


class BackgroundMoveResult(WireModel):
    """Whether a command or task goes on in the background."""

    moved: bool
    """False: no tool call runs one. True: `background.started` or `task.updated` follows."""


class BackgroundStopParams(SessionParams):
    """Stop a background command."""

    id: str
    """`bg1`, `bg2` …"""


class TaskResumeParams(SessionParams):
    """Continue a task that was lost, stopped or failed."""

    id: str
    """`t1`, `t2` …"""


class TaskStopParams(SessionParams):
    """Stop a task."""

    id: str
    """`t1`, `t2` …"""


class BackgroundStopResult(WireModel):
    """End of a background command; also of one that had ended before."""

    exit_code: int | None
    """Null: a signal ended it, or it has not ended within 6 s."""
    signal: int | None = None
    """Signal that ended it."""


class ReviewParams(SessionParams):
    """Review uncommitted changes, or the changes since a commit."""

    base: str | None = None
    """Commit; left out: uncommitted changes are reviewed."""
    paths: FailFastList[str] | None = None
    """Files, folders or globs, relative to the workspace; left out: all."""
    instructions: str | None = None
    """Instructions for the review."""
    work_done_token: Token | None = None
    """Token for work-done progress."""


PROMPT: Final[Method[PromptParams, PromptAccepted | RunResult]] = request(
    "agent/prompt", PromptParams, PromptResult
)
STEER: Final = request("agent/steer", SteerParams, PromptAccepted)
FOLLOW_UP: Final = request("agent/followUp", FollowUpParams, PromptAccepted)
QUEUE_UPDATE: Final = request("agent/queue/update", QueueUpdateParams, QueueUpdateResult)
RUN_CANCEL: Final = request("agent/run/cancel", RunCancelParams, RunCancelResult)
RUN_RETRY: Final = request("agent/run/retry", RunRetryParams, PromptAccepted)
COMPACT: Final = request("agent/compact", CompactParams, CompactResult)
BASH: Final = request("agent/bash", BashParams, BashResult)
PLAN_RESPOND: Final = request("agent/plan/respond", PlanRespondParams, PlanRespondResult)
BACKGROUND_MOVE: Final = request(
    "agent/background/move", BackgroundMoveParams, BackgroundMoveResult
)
TASK_RESUME: Final = request("agent/task/resume", TaskResumeParams, TaskInfo)
TASK_STOP: Final = request("agent/task/stop", TaskStopParams, TaskInfo)
BACKGROUND_STOP: Final = request(
    "agent/background/stop", BackgroundStopParams, BackgroundStopResult
)
REVIEW: Final = request("agent/review", ReviewParams, RunResult)
EDITOR_CONTEXT: Final = notification("agent/editorContext", EditorContext)
SERVED: Final = (
    PROMPT,
    STEER,
    FOLLOW_UP,
    QUEUE_UPDATE,
    RUN_CANCEL,
    RUN_RETRY,
    COMPACT,
    BASH,
    PLAN_RESPOND,
    BACKGROUND_MOVE,
    BACKGROUND_STOP,
    TASK_RESUME,
    TASK_STOP,
    REVIEW,
)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
