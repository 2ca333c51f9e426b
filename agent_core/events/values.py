"""The values inside events and snapshots that are not messages: permissions, questions, views, streams."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agent_core.kernel import ItemId, JsonObject, JsonValue, QueueId, RunId, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import Usage, UserContent

SessionState = Literal["idle", "running", "requiresAction", "compacting", "retrying", "error"]
RunStage = Literal["prepare", "execute", "summarize", "persist"]
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
MessageRole = Literal["user", "assistant", "custom"]
Uint = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""LSP's `uinteger`."""
SafeCount = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""A count that JavaScript holds without loss."""


class EventValue(Value, frozen=True, kw_only=True, rename="camel"):
    """A value inside events; its keys in JSON are camelCase."""


class TaggedEvent(EventValue, frozen=True, kw_only=True, tag_field="type"):
    """Base of every event.

    The class is the only definition of its event: `tag` is the `type` in JSON, `Meta` the bounds, and the docstrings of
    class and fields are the descriptions in `schema.json` and PROTOCOL.md.
    """


class InjectedBy(EventValue, frozen=True, kw_only=True):
    """Marker of input from a program rather than the user."""

    custom_type: str
    """Chosen by the program, so that it knows its words again."""
    display: bool = True
    """Whether people see them."""
    details: JsonValue = None
    """For the program's front end; the model never sees it."""


class QueueItem(EventValue, frozen=True, kw_only=True):
    """Words that wait for their turn."""

    queue_id: QueueId
    delivery: Delivery
    content: tuple[UserContent, ...]
    at_ms: int
    custom: InjectedBy | None = None
    """Set when a program said them in its own name."""
    source: InputSource = "person"


CallPurpose = Literal[
    "main", "compaction", "title", "completion", "memory", "task", "review", "extension"
]
"""Purpose of a model call. `task` and `review`: an answer in the conversation of a task, or of a review."""


class Budgets(EventValue, frozen=True, kw_only=True):
    """Limits of one run; None: no limit."""

    usd: float | None = None
    tokens: int | None = None
    turns: int | None = None
    minutes: float | None = None


class SessionConfig(EventValue, frozen=True, kw_only=True):
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


class UsageReport(EventValue, frozen=True, kw_only=True):
    """Tokens and money, beside how full the context window is."""

    tokens: Usage
    context_used: int | None
    """None: unknown, as right after a compaction until the next answer."""
    context_size: int
    """0: the model does not say."""


class ChangeCounts(EventValue, frozen=True, kw_only=True):
    """How much a run or session has changed."""

    files: int = 0
    additions: int = 0
    deletions: int = 0
    unreviewed: int = 0


class CheckpointInfo(EventValue, frozen=True, kw_only=True):
    """A state to which files and conversation can be taken back."""

    checkpoint: str
    run: RunId | None
    """The run before whose first change it lies; None: a restore, which it takes back."""
    at_ms: int
    files: int
    """How many files have been changed from there to the next one, as far as that is known when it is told."""


BackgroundEnder = Literal["itself", "model", "user", "session"]
"""Author of the end of a background command: the command, a tool call, a person, or the end of the session."""


class BackgroundInfo(EventValue, frozen=True, kw_only=True):
    """A command that goes on beside the runs of its session."""

    id: str
    """`bg1`, `bg2` …, unique in the session."""
    item: ItemId | None
    """The tool call that started it."""
    command: str
    log: str
    """File with all of its output, which may be read while it grows."""
    ports: tuple[int, ...] = ()
    """TCP ports on which it listens."""


TaskState = Literal["queued", "running", "completed", "failed", "cancelled", "budget", "lost"]
"""`lost`: the process that ran it ended; its session is kept and can be continued."""


class TaskInfo(EventValue, frozen=True, kw_only=True):
    """A task that the agent gave to another agent, which works in a session of its own."""

    id: str
    """`t1`, `t2` …, unique in the session."""
    session: SessionId
    """The session in which it works; a subscription of its own shows it."""
    item: ItemId | None
    """The tool call that started it."""
    description: str
    """The task in a few words."""
    preset: str
    """Name of the agent that works on it."""
    state: TaskState
    background: bool
    """Whether the run goes on meanwhile."""
    activity: str = ""
    """Title of the tool call that it makes now; empty: none."""
    turns: Uint = 0
    """Answers of its model."""
    tool_calls: Uint = 0
    """Tool calls that have a result."""
    tokens: SafeCount = 0
    """Everything that it has used so far."""
    usd: float | None = None
    """Cost in US dollars; null: nothing yet, or the price is not known."""
    started_ms: SafeCount
    """Unix milliseconds."""
    duration_ms: SafeCount = 0
    """Time since its first start, at its last event."""
    error: str | None = None
    """Why it failed; null: it did not."""
    worktree: str | None = None
    """Id of the git worktree that it works in or left its changes in; null: it works in the workspace."""

    @property
    def is_ended(self) -> bool:
        """Whether it neither runs nor waits to run."""
        return self.state not in {"queued", "running"}


class RunParent(EventValue, frozen=True, kw_only=True):
    """The conversation that a run of a task belongs to."""

    session: SessionId
    """The session that gave the task."""
    item: ItemId | None = None
    """Its tool call that started the task; null: not known any more."""


class DocumentChange(EventValue, frozen=True, kw_only=True):
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


class Failure(EventValue, frozen=True, kw_only=True):
    """Why a run, retry or compaction failed, for people and for programs."""

    kind: str
    """A kind of the wire's closed list."""
    message: str
    retryable: bool = False
    http_status: int | None = None
    retry_after_ms: int | None = None


class RunResult(EventValue, frozen=True, kw_only=True):
    """Result of a run."""

    run: RunId
    status: RunStatus
    text: str
    """The last words of the model; empty when it said nothing."""
    usage: UsageReport
    changes: ChangeCounts
    error: Failure | None = None


SandboxCoverage = Literal["full", "partial", "none"]
Risk = Literal["low", "medium", "high"]
RuleScope = Literal["run", "session", "project", "user"]
OptionKind = Literal[
    "allowOnce",
    "allowRun",
    "allowSession",
    "allowProject",
    "allowUser",
    "rejectOnce",
    "rejectAlways",
]
TargetKind = Literal["edit", "delete", "fetch", "mcp", "outsideRoot", "secret", "tool"]


class RuleInfo(EventValue, frozen=True, kw_only=True):
    """A standing answer, as people see it."""

    id: str
    tool: str
    argv_prefix: tuple[str, ...] | None = None
    path: str | None = None
    host: str | None = None
    mcp: str | None = None
    needs: tuple[str, ...] | None = None
    verdict: Literal["allow", "ask", "deny"]
    scope: RuleScope
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


class PermissionOption(EventValue, frozen=True, kw_only=True):
    """One way to answer."""

    id: str
    kind: OptionKind
    label: str
    rule: RuleInfo | None = None
    """Rule that this answer creates; None: no rule."""


class CommandRead(EventValue, frozen=True, kw_only=True):
    """One command of a line, as far as it could be read."""

    argv: tuple[str, ...]


class CommandSubject(EventValue, frozen=True, kw_only=True):
    """A command that wants to run."""

    type: Literal["command"] = "command"
    argv: tuple[str, ...] | None
    """The words of a line that is one plain command."""
    command: str
    """Exactly what will run."""
    cwd: Path
    plain: bool
    """The line was understood whole; if not, `parsed` is only what might run."""
    sandbox: SandboxCoverage
    parsed: tuple[CommandRead, ...]
    needs: tuple[str, ...] = ()
    """Access that containment would deny and that the model requests."""


class TargetSubject(EventValue, frozen=True, kw_only=True):
    """Anything else with a target: a file to change, a tool of somebody else."""

    type: TargetKind
    tool: str
    sandbox: SandboxCoverage
    path: Path | None = None
    input: JsonObject | None = None
    """The arguments of the call, shortened where they are long."""
    change_set: str | None = None
    """Id of the change set of an edit; None for other targets."""


class TrustSubject(EventValue, frozen=True, kw_only=True):
    """A workspace that wants to configure the session and to be changed."""

    type: Literal["trust"] = "trust"
    folder: Path
    added: tuple[str, ...] = ()
    """Files added since it was trusted, as paths relative to it; at most 20. `removed` and `changed` alike."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    difference: str = ""
    """How texts differ from those that were trusted, as a unified diff."""


class ServerSubject(EventValue, frozen=True, kw_only=True):
    """A server whose tools want to be used."""

    type: Literal["server"] = "server"
    server: str
    way: str
    """How it is reached, and what holds it in."""
    source: Path
    """The file that names it."""
    added: tuple[str, ...] = ()
    """Tools that nobody approved yet, by the server's own names; at most 128, as the other two."""
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    """Tools that would run without a question each time, since the server marks them as read-only."""
    difference: str = ""
    """All that the server says of new tools, and how it differs for those that have changed."""


PermissionSubject = CommandSubject | TargetSubject | TrustSubject | ServerSubject


class PermissionRequest(EventValue, frozen=True, kw_only=True):
    """Asks a person whether something may be done."""

    request: str
    session: SessionId
    run: RunId | None
    """None: nothing runs; the wire then shows an empty run."""
    item: ItemId
    title: str
    description: str | None
    """Why it is asked."""
    risk: Risk
    since_ms: int
    expires_ms: int | None
    """When silence becomes a no."""
    subject: PermissionSubject
    options: tuple[PermissionOption, ...]
    default: str
    """The option that silence takes; never one that allows."""

    def option(self, option: str) -> PermissionOption | None:
        """Return the option of that id."""
        return next((one for one in self.options if one.id == option), None)


class PermissionRequested(TaggedEvent, frozen=True, kw_only=True, tag="permission.requested"):
    """The user is asked for a permission."""

    run: RunId | None
    request: PermissionRequest


class PermissionResolved(TaggedEvent, frozen=True, kw_only=True, tag="permission.resolved"):
    """A permission request is answered; the rule that follows from the answer is in force."""

    run: RunId | None
    request: str
    option: str | None
    """Id of the option; null: none."""
    by: str
    """Client that answered, or `timeout`, `cancelled`, `restart`."""
    rule: RuleInfo | None = None


QuestionKind = Literal["choice", "text", "confirm"]
Answer = bool | str | tuple[str, ...]
"""Yes or no to a `confirm`; words for a `text`; an option's id for a `choice`, or several."""


class QuestionOption(EventValue, frozen=True, kw_only=True):
    """One thing to choose."""

    id: str
    label: str
    description: str | None = None


class QuestionLine(EventValue, frozen=True, kw_only=True):
    """One question of a form."""

    id: str
    text: str
    kind: QuestionKind
    options: tuple[QuestionOption, ...] = ()
    """Options of a `choice`."""
    default: Answer | None = None
    """Answer used when the user gives none; None: then there is no answer."""


class Question(EventValue, frozen=True, kw_only=True):
    """Asks a person what is meant."""

    request: str
    session: SessionId
    run: RunId | None
    """None: nothing runs; the wire then shows an empty run."""
    questions: tuple[QuestionLine, ...]
    blocking: bool
    """Whether the asker waits for the answer."""
    since_ms: int
    expires_ms: int | None
    """When silence becomes the answer."""


class Answers(EventValue, frozen=True, kw_only=True):
    """Answers to a question, or the reason why there are none."""

    answers: Mapping[str, Answer] | None
    """By the id of the line; None: there are none, and `by` says why."""
    by: str
    """Source of the answer or refusal: a client, `timeout`, `cancelled`, `policy` (the policy forbids questions here),
    `unshown` (no client can show it)."""


class QuestionRequested(TaggedEvent, frozen=True, kw_only=True, tag="question.requested"):
    """The user is asked a question."""

    run: RunId | None
    request: Question


class QuestionResolved(TaggedEvent, frozen=True, kw_only=True, tag="question.resolved"):
    """A question is answered or withdrawn."""

    run: RunId | None
    request: str
    by: str
    """Client that answered, or `timeout`, `cancelled`, `unshown`, `restart`."""
    answers: Mapping[str, Answer] | None = None
    """Answers by line id; left out: none."""


class UiNotify(TaggedEvent, frozen=True, kw_only=True, tag="ui.notify"):
    """Something to read once: `text` and `level`."""

    extension: str
    view: JsonObject


class UiStatus(TaggedEvent, frozen=True, kw_only=True, tag="ui.status"):
    """A few words under a key, until others come: `key` and `text`, null to take them off."""

    extension: str
    view: JsonObject


class UiWidget(TaggedEvent, frozen=True, kw_only=True, tag="ui.widget"):
    """A view under a key, until another comes: `key`, `view`, null to take it off, and `placement`."""

    extension: str
    view: JsonObject


class UiTitle(TaggedEvent, frozen=True, kw_only=True, tag="ui.title"):
    """A name for the window: `text`."""

    extension: str
    view: JsonObject


class UiEditorText(TaggedEvent, frozen=True, kw_only=True, tag="ui.editorText"):
    """Words for where the user types: `text`, and the `mode` `replace` or `insert`."""

    extension: str
    view: JsonObject


UiEvent = UiNotify | UiStatus | UiWidget | UiTitle | UiEditorText
