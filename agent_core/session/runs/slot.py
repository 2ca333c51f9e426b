"""At most one activity per session, in one cancel scope: a run, a compaction, a navigation or a restore."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import anyio
import msgspec
from msgspec import Struct

from agent_core.events import Event, RunResult
from agent_core.events.values import RunStage
from agent_core.kernel import ItemId, RunId
from agent_core.kernel.ids import mark_run
from agent_core.kernel.values import Value
from agent_core.session.input.deferred_messages import DeferredMessages

ActivityKind = Literal["run", "compaction", "navigation", "restore"]
TITLES: Mapping[ActivityKind, str] = {
    "run": "a run",
    "compaction": "a compaction",
    "navigation": "a move to another branch",
    "restore": "a restore of files",
}
"""The kinds of activity in messages to people."""
AFTER_CANCEL_S = 1.0
"""Total time limit for the hooks of a cancelled activity, in seconds: the caller of the cancel waits for its end."""
RESULTS_KEPT = 64
SETTLE_S = 5.0
"""How long the end of an activity may take to write what waited for it."""


class CancelHandle(Value, frozen=True):
    """How to end one tool call, and when it is over."""

    end: Callable[[], None]
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)


class Activity(Struct, kw_only=True):
    """The current activity, and the means to end it."""

    kind: ActivityKind
    run: RunId | None
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    stage: RunStage | None = None
    """Stage of the run; None: it is no run, or has not begun."""
    abandoned: bool = False
    """It could not be ended in time: whatever it still says is dropped."""
    is_interrupted: bool = False
    """An end was requested: the model is informed."""
    cancel_handles: dict[ItemId, CancelHandle] = msgspec.field(default_factory=dict)

    def started(self, item: ItemId, stop: Callable[[], None]) -> None:
        """Report that a tool call runs."""
        self.cancel_handles[item] = CancelHandle(stop)

    def ended(self, item: ItemId) -> None:
        """Report that it is over."""
        if (stop := self.cancel_handles.pop(item, None)) is not None:
            stop.over.set()


class ActivitySlot:
    """Reserves the session for one activity, holds it for that and waits for its end.

    Reserving is immediate, so that two prompts cannot both find the session idle.
    """

    def __init__(self, deferred: DeferredMessages, publish: Callable[[Event], object]) -> None:
        """Create a free slot.

        Args:
            deferred: Messages that wait for the end of an activity; they are flushed before the next one may start.
            publish: Publishes an event.
        """
        self._deferred = deferred
        self._publish = publish
        self._current: Activity | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._results: OrderedDict[RunId, RunResult] = OrderedDict()
        self._activities: dict[RunId, Activity] = {}

    @property
    def current(self) -> Activity | None:
        """The current activity; None: the session is idle."""
        return self._current

    @property
    def newest(self) -> RunResult | None:
        """The result of the newest run; None: there was none in this process."""
        return next(reversed(self._results.values()), None)

    def reserve(self, kind: ActivityKind, run: RunId | None) -> Activity:
        """Reserve the session for an activity that is about to start. The caller has just found it idle."""
        activity = Activity(kind=kind, run=run)
        self._current = activity
        self._idle = anyio.Event()
        if run is not None:
            self._activities[run] = activity
        return activity

    def release(self, activity: Activity) -> None:
        """Report that an activity is over, or never started."""
        activity.over.set()
        if activity.run is not None:
            _ = self._activities.pop(activity.run, None)
        if self._current is activity:
            self._current = None
            self._idle.set()

    def finish(self, result: RunResult) -> None:
        """Keep what a run came to, for those who wait or ask later."""
        self._results[result.run] = result
        while len(self._results) > RESULTS_KEPT:
            _ = self._results.popitem(last=False)

    async def wait(self, run: RunId) -> RunResult | None:
        """Wait for a run to be over; None when it is not known (any more)."""
        activity = self._activities.get(run)
        if activity is not None:
            await activity.over.wait()
        return self._results.get(run)

    async def wait_idle(self) -> RunResult | None:
        """Wait until nothing goes on; gives the newest result."""
        while self._current is not None:
            await self._idle.wait()
        return self.newest

    @asynccontextmanager
    async def hold(self, activity: Activity) -> AsyncGenerator[None]:
        """Hold the session for a reserved activity; a cancel of the activity ends the block, and nothing is raised."""
        if activity.run is not None:
            mark_run(activity.run)
        try:
            with activity.scope:
                yield
        finally:
            # An abandoned activity is released by its canceller, after the event of its end: nothing starts before that.
            if not activity.abandoned:
                with anyio.move_on_after(SETTLE_S, shield=True):
                    await self._deferred.flush("turn", "run", run=None, publish=self._publish)
            if not activity.abandoned:
                self.release(activity)
