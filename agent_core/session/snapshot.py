"""The read-only picture of a session that a front end starts from."""

from collections import OrderedDict
from typing import Literal

import msgspec
from msgspec import Struct

from agent_core.events import (
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
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    UsageReport,
)
from agent_core.events.values import SessionState
from agent_core.kernel import ItemId, RunId, SessionId, ToolCallId
from agent_core.kernel.values import Value
from agent_core.session.extension_view_state import ExtensionViewState, PersistentView
from agent_core.workspace.permissions.call_permission import SandboxLevel

ITEMS_KEPT = 200
"""How many items of a run a snapshot shows; older ones are read from the transcript."""
TAIL_CHARS = 16_384
"""How much streamed text of an unfinished tool call a snapshot shows."""
PIECES_HELD = 64
"""How many pieces of a tool's output are held before only the end of them is."""

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
    unsaved: int
    """Entries that the disk does not hold yet; above 0 only while it fails."""


class SnapshotBuilder:
    """Builds the picture from the session's own events, as every front end would."""

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
