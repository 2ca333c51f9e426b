"""The parts of a session, and the one gate through which its events are published."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from agent_core.changes import BlobStore
from agent_core.changes.ports.byte_files import ByteFiles
from agent_core.changes.ports.change_detector import ChangeDetector
from agent_core.compaction import CompactionPolicy, Compactor
from agent_core.events import (
    Event,
    EventFeed,
    EventSubscription,
    Failure,
    PermissionMode,
    RunStatus,
    SessionConfig,
    SessionConfigured,
    SessionStateChanged,
)
from agent_core.events.values import SessionState as State
from agent_core.hooks import HookRunner
from agent_core.kernel import Clock, EntryId, JsonObject, JsonValue, SessionId, uuid7
from agent_core.kernel.errors import ProviderError, TillerError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.mcp import McpServers
from agent_core.providers import CacheRetention
from agent_core.providers.http.retry import is_retryable
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import Reloadable
from agent_core.session.changes.checkpoints.store import Checkpoints
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.review import ChangeReviewer
from agent_core.session.history.fork import ForkWriter
from agent_core.session.history.recorder import Durability, Recorder
from agent_core.session.input.commands import SlashCommands
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.input.prompt_deduplication import MessageIndex
from agent_core.session.input.queue import InputQueue
from agent_core.session.input.system_prompt import SystemPromptSync
from agent_core.session.model_selection import ModelSelection, Servers
from agent_core.session.permissions.broker import PermissionBroker
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.permissions.state import PermissionState
from agent_core.session.permissions.trust import TrustManager
from agent_core.session.redaction import EventRedaction
from agent_core.session.runs.budgets import BudgetPolicy
from agent_core.session.runs.retry_policy import RetryOptions
from agent_core.session.runs.slot import Activity
from agent_core.session.runs.usage import UsageTracker
from agent_core.session.snapshot import SnapshotBuilder
from agent_core.session.tools.processes import ProcessLog
from agent_core.session.tools.registry import ToolRegistry
from agent_core.tools import ToolSpec
from agent_core.tools.program_versions import ProgramVersions
from agent_core.tools.read_cache import ReadCache
from agent_core.workspace import Workspace
from agent_core.workspace.permissions.secret_access import SecretAccess

SystemPrompt = Callable[[Sequence[ToolSpec]], Awaitable[str]]
"""Builds the system prompt of a run for the tools that are active."""


class SessionOptions(Struct, kw_only=True):
    """Working options of a session; the face changes some of them between requests."""

    retry: RetryOptions = msgspec.field(default_factory=RetryOptions)
    compaction: CompactionPolicy = msgspec.field(default_factory=CompactionPolicy)
    auto_compact: bool = True
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    skip_on_steer: bool = True
    steer_grace_s: float | None = 2.0
    cache: CacheRetention = "short"
    """For models of which models.json says nothing."""
    tool_options: dict[str, dict[str, JsonValue]] = msgspec.field(default_factory=dict)
    """Settings by tool (`bash` …)."""
    durability: Durability = "run"
    scratch: str = ""
    """A private folder for whole outputs."""


class WorkspaceContext(Struct, kw_only=True):
    """Where a session works, and what it may do there."""

    workspace: Workspace
    detector: ChangeDetector | None = None
    """Detects file changes by commands; None: they are not detected."""
    raw: ByteFiles | None = None
    """Restores files byte for byte; None: only UTF-8 texts can be restored."""
    permissions: PermissionState = msgspec.field(default_factory=PermissionState)
    allowed: PermissionMode = "yolo"
    """The most that the user's own settings allow; no editor or project goes above it."""
    processes: ProcessLog = msgspec.field(default_factory=ProcessLog)
    allowance: BudgetPolicy = msgspec.field(default_factory=BudgetPolicy)
    secrets: SecretAccess = msgspec.field(default_factory=SecretAccess)
    """The secret files that a person let the session read."""


class EventPublisher(Struct, kw_only=True):
    """The one way to tell something: the picture sees it, then the feed hands it on."""

    feed: EventFeed
    redaction: EventRedaction = msgspec.field(default_factory=lambda: EventRedaction(Redactor()))
    picture: SnapshotBuilder = msgspec.field(default_factory=SnapshotBuilder)
    state: State = "idle"
    awaits_user: Callable[[], bool] = lambda: False
    """Whether a person is asked something without which it does not go on."""
    dropped: int = 0
    """Events of fenced runs that were not told."""
    backlog: list[Event] = msgspec.field(default_factory=list)
    """Events before the first subscription; sent to the first reader."""
    opened_after: EntryId | None = None
    """The newest entry that there was when the session was opened."""

    def subscribe(self) -> EventSubscription:
        """Open a reader; the first one hears what happened before."""
        reader = self.feed.subscribe()
        backlog, self.backlog = self.backlog, []
        for event in backlog:
            self.publish(event)
        return reader

    def publish(self, event: Event) -> None:
        """Publish an event, without secrets; the end of what streams may have to wait for what follows."""
        for clean in self.redaction.clean(event):
            stamped = self.feed.publish(clean)
            self.picture.apply(clean, stamped.at_ms)

    def publish_for(self, activity: Activity, event: Event) -> None:
        """Publish an event of an activity, unless that was fenced off."""
        if activity.abandoned:
            self.dropped += 1
            return
        self.publish(event)

    def set_state(self, state: State) -> None:
        """Report the session's state when it changes."""
        if state == "running" and self.awaits_user():
            # One question of several is settled: the rest still waits for its person.
            state = "requiresAction"
        if state != self.state:
            self.state = state
            self.publish(SessionStateChanged(state=state))


class FollowsSettings(Protocol):
    """The settings of a session, which others change while it is open."""

    async def configure(self, values: JsonObject) -> None:
        """Apply the settings of an editor's configuration in place of its earlier ones."""
        ...

    async def watch(self, watches: FolderWatches) -> None:
        """Read the settings again whenever one of their files has changed; problems in them are reported."""
        ...


class SessionContext(Value, frozen=True, kw_only=True):
    """The parts of one session, each the owner of its own state."""

    session: SessionId
    clock: Clock
    publisher: EventPublisher
    recorder: Recorder
    fork_writer: ForkWriter
    """Keeps another session where this one is kept."""
    inbox: InputQueue
    message_index: MessageIndex
    deferred: DeferredMessages
    models: ModelSelection
    toolbox: ToolRegistry
    hooks: HookRunner
    compactor: Compactor
    tally: UsageTracker
    place: WorkspaceContext
    contents: BlobStore
    """Where older versions of changed files are kept."""
    changes: ChangeRecord
    review: ChangeReviewer
    checkpoints: Checkpoints
    gate: PermissionBroker
    questions: QuestionPrompts
    servers: McpServers | None = None
    """None: there are none."""
    trusting: TrustManager | None = None
    """None: the creator of the session decided whether its workspace is trusted."""
    system_prompt: SystemPrompt
    prompting: SystemPromptSync | None = None
    """Sends only what has changed of it; None: it is sent whole with every run."""
    commands: SlashCommands
    settings: FollowsSettings | None = None
    """None: the session has the fixed options of its creator."""
    reloads: list[Reloadable] = msgspec.field(default_factory=list[Reloadable])
    """Parts that a reload reads again; extensions add themselves."""
    options: SessionOptions
    seen: ReadCache = msgspec.field(default_factory=ReadCache)
    """Texts of files that the model has seen."""
    versions: ProgramVersions = msgspec.field(default_factory=ProgramVersions)

    def new_id(self) -> str:
        """Mint an id that sorts by time."""
        return uuid7(self.clock.now_ms())

    def config(self) -> SessionConfig:
        """Return what is in force for the next request."""
        mode: PermissionMode = self.place.permissions.mode
        return SessionConfig(
            model=self.models.ref,
            thinking=self.models.thinking,
            mode=mode,
            auto_compact=self.options.auto_compact,
            steering=self.inbox.steering_mode,
            follow_up=self.inbox.follow_up_mode,
            tools=self.toolbox.active_names,
            budgets=self.place.allowance.effective,
            offer_branch_summary=self.options.compaction.offer_branch_summary,
        )


async def refresh_models(parts: SessionContext, *, servers: Servers = "keep") -> None:
    """Read models and keys again; where another model is in force by that, it is told."""
    before = parts.config()
    await parts.models.refresh(servers=servers)
    if (after := parts.config()) != before:
        _ = parts.publisher.publish(SessionConfigured(config=after))


def failure_of(error: TillerError) -> Failure:
    """Describe an error for front ends."""
    if isinstance(error, ProviderError):
        wait_s = error.retry_after_s
        return Failure(
            kind=error.wire_kind,
            message=str(error),
            retryable=is_retryable(error),
            http_status=error.status,
            retry_after_ms=None if wait_s is None else round(wait_s * 1000),
        )
    return Failure(kind=error.kind, message=str(error), retryable=error.retryable)


def status_of(error: TillerError) -> RunStatus:
    """Return how a run ended that an error ended: the model's own no is told from what went wrong."""
    refused = isinstance(error, ProviderError) and error.reason == "refused"
    return "refused" if refused else "failed"


def tool_options(options: SessionOptions, name: str) -> JsonObject:
    """Return the settings of one tool."""
    return options.tool_options.get(name, {})
