"""Methods that start, steer, stop and report runs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    Count,
    Many,
    Seq,
    SessionParams,
    Token,
    Uint,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.blocks import Block, Content, Diagnostic, Range
from tiller_server.lsp.wire.changes import ChangeSet
from tiller_server.lsp.wire.errors import KilledProcess, RunError, RunStatus
from tiller_server.lsp.wire.session import QueueItem, Usage

__all__ = [
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
    """Where the user is in the focused document."""

    uri: str
    version: int
    selections: Many[Range]
    visible: Many[Range]
    mode: Literal["normal", "insert"] | Vendor | None = None


class EditorContext(WireModel):
    """What the editor shows: sent along with a prompt, or by itself whenever it changes."""

    focus: EditorFocus | None = None
    open: Many[str]
    dirty: Many[str] | None = None


class PromptParams(SessionParams):
    """Says something to the agent; acknowledged at once, or held for the run with `wait`."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    """Minted by the client; the same id twice is the same prompt. The server mints one when it is left out."""
    content: Content
    context: EditorContext | None = None
    delivery: Literal["auto", "steer", "followUp", "reject"] | Vendor | None = None
    if_idle: IfIdle | None = None
    expected_run: str | None = None
    wait: bool | None = None
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


class SteerParams(SessionParams):
    """Says something to a run that is going on; the same as a prompt with `delivery: "steer"`."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    content: Content
    expected_run: str | None = None
    if_idle: IfIdle | None = None


class FollowUpParams(SessionParams):
    """Says something for when the run is done; the same as a prompt with `delivery: "followUp"`."""

    message_id: Annotated[str, Field(min_length=1)] | None = None
    content: Content


class PromptAccepted(WireModel):
    """The words are stored; what happens with them."""

    accepted: Literal["started", "steered", "queued", "held", "duplicate", "handled"] | Vendor
    run: str | None = None
    queue_id: str | None = None
    message_id: str | None = None
    seq: Seq


class Finding(WireModel):
    """Something a review found."""

    uri: str
    diagnostic: Diagnostic


class RunResult(WireModel):
    """How a run ended."""

    run: str
    status: RunStatus
    message: str | None = None
    """The last words of the agent."""
    usage: Usage
    changes: ChangeSet
    findings: Many[Finding] | None = None
    error: RunError | None = None


class QueueOp(WireModel):
    """One change to the queue."""

    op: Literal["remove", "replace", "move", "sendNow", "steer"] | Vendor
    queue_id: str
    content: Content | None = None
    index: Uint | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "QueueOp":
        if self.op == "replace" and self.content is None:
            raise PydanticCustomError("shape", "have content to replace")
        if self.op == "move" and self.index is None:
            raise PydanticCustomError("shape", "have an index to move to")
        return self


class QueueUpdateParams(SessionParams):
    """Edits the queue; refused when it changed after `ifSeq`."""

    ops: Many[QueueOp]
    if_seq: Seq | None = None


class QueueUpdateResult(WireModel):
    """The queue afterwards."""

    queue: Many[QueueItem]
    seq: Seq | None = None
    """The event that told it, for the next `ifSeq`."""


class RunCancelParams(SessionParams):
    """Stops a run, one tool call of it, or everything in the session."""

    run: str | None = None
    scope: Literal["run", "item", "session"] | Vendor | None = None
    item: str | None = None
    queue: Literal["keep", "return", "drop"] | Vendor | None = None
    grace_ms: Count | None = None

    @model_validator(mode="after")
    def _names_its_item(self) -> "RunCancelParams":
        if self.scope == "item" and self.item is None:
            raise PydanticCustomError("shape", 'have an item for scope "item"')
        return self


class RunCancelResult(WireModel):
    """What was stopped, what would not stop, and queued words that go back to the composer."""

    status: Literal["cancelled", "alreadyEnded"] | Vendor
    seq: Seq
    killed: Many[KilledProcess]
    survivors: Many[KilledProcess]
    returned: Many[Many[Block]]


class RunRetryParams(SessionParams):
    """Goes on with a run that failed or was interrupted, without repeating the user's words."""

    run: str


class CompactParams(SessionParams):
    """Summarises what was said so that it takes less room; ends a run that is going on."""

    instructions: str | None = None
    keep_recent_tokens: Count | None = None


class CompactResult(WireModel):
    """The compaction that has begun, or null and why there is nothing to do."""

    compaction: str | None
    seq: Seq | None = None
    why: str | None = None
    cancelled_run: str | None = None
    """The run that was cancelled first."""


class BashParams(SessionParams):
    """Runs a command for the user; the model sees it unless it is excluded."""

    command: Annotated[str, Field(min_length=1)]
    exclude_from_context: bool | None = None
    partial_result_token: Token | None = None


class BashResult(WireModel):
    """What the command printed; the file with everything when that was cut."""

    output: str
    exit_code: int | None
    cancelled: bool
    truncated: bool
    full_output: str | None = None


class ReviewParams(SessionParams):
    """Reviews changes; the findings are published as diagnostics too."""

    base: str | None = None
    """A commit; without it what is not committed is looked at."""
    paths: Many[str] | None = None
    """Files, folders or globs, from the workspace's root; without it all."""
    instructions: str | None = None
    work_done_token: Token | None = None
