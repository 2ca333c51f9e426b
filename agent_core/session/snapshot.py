"""Snapshots and statistics of a session, as clients see it."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import (
    BackgroundEnded,
    BackgroundInfo,
    BackgroundListening,
    BackgroundStarted,
    BashEnded,
    BashStarted,
    ChangeCounts,
    ChangesUpdated,
    CompactionEnded,
    CompactionReason,
    CompactionStarted,
    Event,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    PermissionRequest,
    Question,
    QueueItem,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    SessionConfig,
    SessionStateChanged as StateChanged,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskUpdated,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    UiStatus,
    UiTitle,
    UiWidget,
    UsageReport,
)
from agent_core.events.values import SessionState
from agent_core.kernel import ItemId, RunId, SessionId, ToolCallId
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    UsageEntry,
)
from agent_core.workspace.permissions.call_permission import SandboxLevel

MOST_VIEWS: Final = 100
"""Of all extensions together; the oldest goes first."""
PersistentView = UiStatus | UiWidget | UiTitle


class ExtensionViewState:
    """Follows the events and keeps what stands."""

    def __init__(self) -> None:
        self._views: dict[tuple[type[PersistentView], str, str], PersistentView] = {}

    @property
    def all(self) -> tuple[PersistentView, ...]:
        """The standing views, in the order in which they came."""
        return tuple(self._views.values())

    def apply(self, event: Event) -> None:
        """Store or clear the view that an event carries; ignore other events."""
        if not isinstance(event, PersistentView):
            return
        place = type(event), event.extension, str(event.view.get("key", ""))
        _ = self._views.pop(place, None)
        content = event.view.get("view" if isinstance(event, UiWidget) else "text")
        if not content:
            return
        self._views[place] = event
        while len(self._views) > MOST_VIEWS:
            del self._views[next(iter(self._views))]

    def taken_off(self, extension: str) -> tuple[PersistentView, ...]:
        """Return the events that take off all that one extension shows."""
        return tuple(_nothing(one) for one in self.all if one.extension == extension)


def _nothing(shown: PersistentView) -> PersistentView:
    view = {"view" if isinstance(shown, UiWidget) else "text": None}
    return type(shown)(extension=shown.extension, view={**shown.view, **view})


class SessionStats(Value, frozen=True, kw_only=True):
    """A session in numbers."""

    user_messages: int = 0
    assistant_messages: int = 0
    tool_results: int = 0
    other_messages: int = 0
    """Words of programs, and commands of the user."""
    tool_calls: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """How often each tool was called, by name."""
    tokens: Usage
    """All that was used, summaries included."""
    cost: Decimal | None
    """In US dollars; None when a part that used tokens has no known price."""
    first_ms: int | None = None
    """Time of the first entry; None: there is none."""
    last_ms: int | None = None
    file: str | None = None
    """None in memory."""

    @property
    def messages(self) -> int:
        """All messages together."""
        counted = (self.user_messages, self.assistant_messages, self.tool_results)
        return sum(counted) + self.other_messages


class ContextUsage(Value, frozen=True, kw_only=True):
    """How full the model's context window is."""

    used: int | None
    """None: unknown, as right after a compaction until the next answer."""
    size: int
    """0: the model does not say."""

    @property
    def percent(self) -> float | None:
        """How much of the window is used; None when either is unknown."""
        if self.used is None or self.size <= 0:
            return None
        return 100 * self.used / self.size


def session_stats(entries: Iterable[AnyEntry], *, file: str | None = None) -> SessionStats:
    """Count the entries of a session, those of branches that were left included."""
    counts: Counter[_Counted] = Counter()
    tool_calls: Counter[str] = Counter()
    tokens = Usage()
    cost: Decimal | None = Decimal(0)
    first_ms: int | None = None
    last_ms: int | None = None
    for entry in entries:
        first_ms = entry.at_ms if first_ms is None else first_ms
        last_ms = entry.at_ms
        if (kind := _counted_as(entry)) is not None:
            counts[kind] += 1
        tool_calls.update(_tool_calls(entry))
        usage = _usage(entry)
        if usage is not None and usage != NOTHING_USED:
            tokens = tokens.plus(usage)
            cost = _added(cost, usage)
    return SessionStats(
        user_messages=counts["user"],
        assistant_messages=counts["assistant"],
        tool_results=counts["toolResult"],
        other_messages=counts["other"],
        tool_calls=dict(tool_calls),
        tokens=tokens,
        cost=cost,
        first_ms=first_ms,
        last_ms=last_ms,
        file=file,
    )


NOTHING_USED = Usage()
_Counted = Literal["user", "assistant", "toolResult", "other"]
_ROLES: Mapping[str, _Counted] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "toolResult",
}


def _counted_as(entry: AnyEntry) -> _Counted | None:
    match entry:
        case MessageEntry(message=UserMessage()):
            return "user"
        case MessageEntry(message=AssistantMessage()):
            return "assistant"
        case MessageEntry(message=ToolResultMessage()):
            return "toolResult"
        case MessageEntry() | CustomMessageEntry() | ColdEntry(kind="custom_message"):
            return "other"
        case ColdEntry(kind="message", role=role):
            return _ROLES.get(role or "", "other")
        case _:
            return None


def _tool_calls(entry: AnyEntry) -> Iterable[str]:
    match entry:
        case MessageEntry(message=AssistantMessage() as said):
            return (call.name for call in said.tool_calls)
        case ColdEntry(tool_calls=names):
            return names
        case _:
            return ()


def _usage(entry: AnyEntry) -> Usage | None:
    match entry:
        case MessageEntry(message=AssistantMessage(usage=usage)):
            return usage
        case (
            CompactionEntry(usage=usage)
            | BranchSummaryEntry(usage=usage)
            | UsageEntry(usage=usage)
            | ColdEntry(usage=usage)
        ):
            return usage
        case _:
            return None


def _added(sum_: Decimal | None, usage: Usage) -> Decimal | None:
    """Add a price; usage with tokens and without a price makes the sum unknown (None)."""
    if sum_ is None or (usage.cost is None and usage.total):
        return None
    return sum_ if usage.cost is None else sum_ + Decimal(str(usage.cost.total))


ITEMS_KEPT = 200
"""How many items of a run a snapshot shows; older ones are read from the transcript."""
TAIL_CHARS = 16_384
"""How much streamed text of an unfinished tool call a snapshot shows."""
PIECES_HELD = 64
"""How many pieces of a tool's output are held before only the end of them is."""

TASKS_KEPT = 32
"""How many tasks that ended are still shown."""
UNENDED_TASKS = frozenset({"queued", "running", "lost"})
"""States of tasks that may still get another result."""

ItemKind = Literal["message", "thought", "tool"]
ItemEnded = MessageEnded | ThoughtEnded | ToolEnded


class ItemView(Struct, kw_only=True):
    """An item of the current run: its ended event, or what has come so far."""

    item: ItemId
    kind: ItemKind
    started: MessageStarted | ThoughtStarted | ToolStarted
    running: ToolRunning | None = None
    text: list[str] = msgspec.field(default_factory=list)
    """Words, thoughts or tool output so far."""
    ended: ItemEnded | None = None

    @property
    def text_so_far(self) -> str:
        """Everything streamed so far; of a tool's output only the end."""
        whole = "".join(self.text)
        return whole[-TAIL_CHARS:] if self.kind == "tool" else whole


class RunView(Value, frozen=True, kw_only=True):
    """The run going on."""

    run: RunId
    started_ms: int
    items: tuple[ItemView, ...]


class Activities(Value, frozen=True, kw_only=True):
    """Current activities; all None: the session is idle."""

    run: RunId | None = None
    compaction: CompactionReason | None = None
    retry: RetryStarted | None = None
    """Set while a run waits before its next try."""
    bash: str | None = None
    """The user's own command that runs."""


class SessionSnapshot(Value, frozen=True, kw_only=True):
    """A session at one moment; events after `seq` continue it without a hole."""

    session: SessionId
    seq: int
    state: SessionState
    activity: Activities
    title: str | None
    run: RunView | None
    queue: tuple[QueueItem, ...]
    paused: bool
    pending: tuple[PermissionRequest | Question, ...]
    """Pending permission requests and questions, oldest first."""
    sandbox: SandboxLevel
    """How far commands are held in."""
    config: SessionConfig
    usage: UsageReport
    changes: ChangeCounts
    views: tuple[PersistentView, ...]
    """Standing views of extensions."""
    checkpoints: tuple[str, ...]
    """Their ids, oldest first."""
    background: tuple[BackgroundInfo, ...] = ()
    """Background commands that run, oldest first."""
    tasks: tuple[TaskInfo, ...] = ()
    """Tasks of this session that run, were lost or ended last, oldest first."""
    unsaved: int
    """Entries that the disk does not hold yet; above 0 only while it fails."""


class SnapshotBuilder:
    """Builds the snapshot from the session's own events, as every front end would."""

    def __init__(self) -> None:
        self._run: RunId | None = None
        self._started_ms = 0
        self._items: OrderedDict[ItemId, ItemView] = OrderedDict()
        self._compaction: CompactionReason | None = None
        self._retry: RetryStarted | None = None
        self._bash: str | None = None
        self.changes = ChangeCounts()
        """Counts of all changes of the session that wait for the user's decision."""
        self.views = ExtensionViewState()
        self.background: dict[str, BackgroundInfo] = {}
        """Background commands that run, by id."""
        self.tasks: dict[str, TaskInfo] = {}
        """Tasks that run, were lost or ended last, by id."""

    @property
    def activity(self) -> Activities:
        """Current activities."""
        return Activities(
            run=self._run, compaction=self._compaction, retry=self._retry, bash=self._bash
        )

    @property
    def run(self) -> RunView | None:
        """The run going on."""
        if self._run is None:
            return None
        return RunView(
            run=self._run, started_ms=self._started_ms, items=tuple(self._items.values())
        )

    def item_of(self, call: ToolCallId) -> ItemId:
        """Return the item of a tool call that is not over; an id is unique within one answer only."""
        for view in reversed(self._items.values()):
            started = view.started
            if isinstance(started, ToolStarted) and started.call == call and view.ended is None:
                return view.item
        return ItemId(call)

    def call_of(self, item: ItemId) -> ToolCallId | None:
        """Return the tool call behind an item of the current run."""
        view = self._items.get(item)
        started = None if view is None else view.started
        return started.call if isinstance(started, ToolStarted) else None

    def apply(self, event: Event, at_ms: int) -> None:
        """Apply an event to the snapshot."""
        match event:
            case RunStarted(run=run):
                self._run, self._started_ms = run, at_ms
                self._items.clear()
            case RunEnded():
                self._run = None
                self._retry = None
                self._items.clear()
            case ChangesUpdated(files=files, additions=plus, deletions=minus, unreviewed=open_):
                self.changes = ChangeCounts(
                    files=files, additions=plus, deletions=minus, unreviewed=open_
                )
            case MessageDelta() | ThoughtDelta() | ToolOutputDelta() | ToolInputDelta():
                self._delta(event)
            case MessageStarted() | ThoughtStarted() | ToolStarted():
                self._start(event)
            case ToolRunning() | MessageEnded() | ThoughtEnded() | ToolEnded():
                self._advance(event)
            case _:
                self._activity(event)

    def _activity(self, event: Event) -> None:
        match event:
            case TaskCreated(task=task) | TaskUpdated(task=task) | TaskEnded(task=task):
                self._task(task)
            case BackgroundStarted() | BackgroundListening() | BackgroundEnded():
                self._background(event)
            case CompactionStarted(reason=reason):
                self._compaction = reason
            case CompactionEnded():
                self._compaction = None
            case RetryStarted():
                self._retry = event
            case RetryEnded() | StateChanged(state="running"):
                self._retry = None
            case BashStarted(command=command):
                self._bash = command
            case BashEnded():
                self._bash = None
            case _:
                self.views.apply(event)

    def _background(self, event: BackgroundStarted | BackgroundListening | BackgroundEnded) -> None:
        match event:
            case BackgroundStarted(command=started):
                self.background[started.id] = started
            case BackgroundListening(id=id_, ports=ports) if id_ in self.background:
                self.background[id_] = replace(self.background[id_], ports=ports)
            case BackgroundListening():
                pass
            case BackgroundEnded(id=ended):
                _ = self.background.pop(ended, None)

    def _task(self, task: TaskInfo) -> None:
        self.tasks[task.id] = task
        ended = [one.id for one in self.tasks.values() if one.state not in UNENDED_TASKS]
        for id_ in ended[:-TASKS_KEPT]:
            del self.tasks[id_]

    def _start(self, event: MessageStarted | ThoughtStarted | ToolStarted) -> None:
        kind: ItemKind = "message"
        if isinstance(event, ThoughtStarted):
            kind = "thought"
        elif isinstance(event, ToolStarted):
            kind = "tool"
        self._items[event.item] = ItemView(item=event.item, kind=kind, started=event)
        while len(self._items) > ITEMS_KEPT:
            _ = self._items.popitem(last=False)

    def _delta(self, event: MessageDelta | ThoughtDelta | ToolOutputDelta | ToolInputDelta) -> None:
        view = self._items.get(event.item)
        if view is not None and not isinstance(event, ToolInputDelta):
            view.text.append(event.text)
            if view.kind == "tool" and len(view.text) > PIECES_HELD:
                view.text[:] = [view.text_so_far]

    def _advance(self, event: ToolRunning | ItemEnded) -> None:
        view = self._items.get(event.item)
        if view is None:
            return
        if isinstance(event, ToolRunning):
            view.running = event
            return
        view.ended = event
        view.text.clear()
