"""Values and services that the parts of a session share: options, workspace, clock, ids and the publisher of events."""

import logging
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from agent_core.changes.ports import ByteFiles, ChangeDetector
from agent_core.compaction import CompactionPolicy
from agent_core.events import (
    ErrorRaised,
    Event,
    EventFeed,
    EventSubscription,
    ExtensionError,
    Failure,
    Notice,
    PermissionMode,
    RunParent,
    RunStageStarted,
    RunStatus,
    SessionStateChanged,
)
from agent_core.events.values import CallPurpose, RunStage, SessionState as State
from agent_core.hooks import HookFailure
from agent_core.kernel import (
    Clock,
    EntryId,
    JsonObject,
    JsonValue,
    RunId,
    SessionId,
    SystemClock,
    uuid7,
)
from agent_core.kernel.errors import (
    BudgetExceeded,
    ProviderError,
    StorageError,
    TillerError,
    TooManyDenials,
)
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.providers import CacheRetention
from agent_core.providers.http.client import is_retryable
from agent_core.session.history.recorder import Durability
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.redaction import EventRedaction
from agent_core.session.runs.retry_policy import RetryOptions
from agent_core.session.runs.slot import Activity
from agent_core.session.runs.usage import BudgetPolicy
from agent_core.session.snapshot import SnapshotBuilder
from agent_core.session.tools.processes import ProcessLog
from agent_core.storage.ledger import CallLedger
from agent_core.workspace import Workspace
from agent_core.workspace.permissions.call_permission import SecretAccess

log = logging.getLogger(__name__)


class SessionOptions(Struct, kw_only=True):
    """Working options of a session; the face changes some of them between requests."""

    retry: RetryOptions = msgspec.field(default_factory=RetryOptions)
    compaction: CompactionPolicy = msgspec.field(default_factory=CompactionPolicy)
    auto_compact: bool = True
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    tool_concurrency: int = 8
    tool_timeout_s: float | None = None
    """Limit of one call of a tool of an extension; None: no limit."""
    tool_grace_s: float = 4.0
    """How long such a call may take to end after its cancellation; then it is abandoned. Shorter than the wait of a cancel."""
    max_turns: int | None = None
    """Answers of a run before it is asked for its last one; None: no limit."""
    skip_on_steer: bool = True
    steer_grace_s: float | None = 2.0
    cache: CacheRetention = "short"
    """For models of which models.json says nothing."""
    tool_options: dict[str, dict[str, JsonValue]] = msgspec.field(default_factory=dict)
    """Settings by tool (`bash` …)."""
    durability: Durability = "run"
    titles: Literal["auto", "off"] = "auto"
    """Whether a session that may have a title of a model gets one."""
    title_model: str | None = None
    """The model that makes it, by name; None: the session's."""
    completion_trigger: Literal["off", "invoked", "automatic"] = "invoked"
    """When text is completed at the cursor of an editor: never, when the user asks for it, or while the user types, too."""
    completion_model: str | None = None
    """The model that completes, by name; None: the session's."""
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
    ledger: "LedgerAccess | None" = None
    """The ledger of the session's model calls; None: they are not recorded."""


class LedgerAccess(Value, frozen=True, kw_only=True):
    """The ledger of model calls, and what the calls of a session are counted for."""

    open: Callable[[], CallLedger]
    folder: str
    purpose: CallPurpose


class EventPublisher(Struct, kw_only=True):
    """Publisher of events: removes secrets, appends to the feed, then updates the snapshot."""

    feed: EventFeed
    redaction: EventRedaction = msgspec.field(
        default_factory=lambda: EventRedaction(Redactor(), SystemClock())
    )
    snapshot: SnapshotBuilder = msgspec.field(default_factory=SnapshotBuilder)
    state: State = "idle"
    awaits_user: Callable[[], bool] = lambda: False
    """Whether a person is asked something without which it does not go on."""
    dropped: int = 0
    """Count of events of abandoned runs, which were dropped."""
    backlog: list[Event] = msgspec.field(default_factory=list)
    """Events before the first subscription; sent to the first reader."""
    opened_after: EntryId | None = None
    """The newest entry that there was when the session was opened."""

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False, backlog: bool = True
    ) -> EventSubscription:
        """Open a reader; the first one that takes the backlog gets the events from before it."""
        reader = self.feed.subscribe(only=only, partials=partials)
        if backlog:
            self._publish_backlog()
        return reader

    def _publish_backlog(self) -> None:
        backlog, self.backlog = self.backlog, []
        for event in backlog:
            self.publish(event)

    def publish(self, event: Event) -> None:
        """Publish an event, without secrets; the end of what streams may have to wait for what follows."""
        for clean in self.redaction.clean(event, partials=self.feed.wants_partials):
            stamped = self.feed.publish(clean)
            self.snapshot.apply(clean, stamped.at_ms)

    def publish_for(self, activity: Activity, event: Event) -> None:
        """Publish an event of an activity, unless that was abandoned."""
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


class StorageStatusPublisher(Value, frozen=True):
    """Publisher of storage failures and recoveries."""

    publisher: EventPublisher

    def failed(self, error: StorageError, /) -> None:
        """Report that something is only in memory."""
        view = self.publisher.snapshot.run
        _ = self.publisher.publish(
            ErrorRaised(run=view.run if view else None, error=failure_of(error))
        )

    def works_again(self, entries: int, /) -> None:
        """Report that what waited is in the file."""
        text = f"saved again: the session's file holds all of the {entries} entries that had waited for the disk"
        _ = self.publisher.publish(Notice(level="info", text=text))


def report_to(publisher: EventPublisher) -> Callable[[HookFailure], None]:
    """Report that a hook failed; where exactly stands in the log."""

    def publish(failure: HookFailure) -> None:
        # The event is what people see: an error would be written beside it in a terminal.
        log.warning(
            "hook %r failed at %s", failure.owner, failure.point, exc_info=failure.exception
        )
        _ = publisher.publish(
            ExtensionError(
                extension=failure.owner,
                event=failure.point,
                error=failure.error,
                stack=failure.stack,
            )
        )

    return publish


class SessionServices(Value, frozen=True, kw_only=True):
    """The id, the clock and the publisher of a session, which most of its parts use."""

    session: SessionId
    clock: Clock
    publisher: EventPublisher
    parent: RunParent | None = None
    """The conversation that gave this task; None: the session is no task."""

    def new_id(self) -> str:
        """Return a new id that sorts by time."""
        return uuid7(self.clock.now_ms())

    def publish(self, event: Event) -> None:
        """Publish an event."""
        self.publisher.publish(event)


class ActiveRun(Value, frozen=True, kw_only=True):
    """A run and its activity; its events are dropped after it was abandoned."""

    id: RunId
    activity: Activity
    services: SessionServices

    def publish(self, event: Event) -> None:
        """Publish an event of the run, unless it was abandoned."""
        self.services.publisher.publish_for(self.activity, event)

    def enter(self, stage: RunStage) -> None:
        """Begin the next stage."""
        self.activity.stage = stage
        self.publish(RunStageStarted(run=self.id, stage=stage))


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
    """Return the status of a run that an error ended."""
    match error:
        case BudgetExceeded():
            return "budget"
        case TooManyDenials() | ProviderError(reason="refused"):
            return "refused"
        case _:
            return "failed"


def tool_options(options: SessionOptions, name: str) -> JsonObject:
    """Return the settings of one tool."""
    return options.tool_options.get(name, {})
