"""At most one activity per session, in one cancel scope: a run, a compaction, a navigation or a restore."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.events import RunResult
from agent_core.kernel import ItemId, RunId
from agent_core.kernel.values import Value

ActivityKind = Literal["run", "compaction", "navigation", "restore"]
TITLES: Mapping[ActivityKind, str] = {
    "run": "a run",
    "compaction": "a compaction",
    "navigation": "a move to another branch",
    "restore": "a restore of files",
}
"""The kinds of activity in messages to people."""
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
    """Starts, ends and waits for the one activity.

    Reserving is immediate, so that two prompts cannot both find the session idle.
    """

    def __init__(self, group: TaskGroup, *, settle: Callable[[], Awaitable[None]]) -> None:
        """Create the starter of activities, in a task group.

        Args:
            group: The owner of their tasks.
            settle: Called after the end of an activity, before the next one may start.
        """
        self._group = group
        self._settle = settle
        self._current: Activity | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._results: OrderedDict[RunId, RunResult] = OrderedDict()
        self._activities: dict[RunId, Activity] = {}

    @property
    def current(self) -> Activity | None:
        """The current activity; None: the session is idle."""
        return self._current

    def reserve(self, kind: ActivityKind, run: RunId | None) -> Activity:
        """Reserve the session for an activity that is about to start. The caller has just found it idle."""
        activity = Activity(kind=kind, run=run)
        self._current = activity
        self._idle = anyio.Event()
        if run is not None:
            self._activities[run] = activity
        return activity

    def start(
        self,
        activity: Activity,
        work: Callable[[], Awaitable[None]],
        *,
        then: Callable[[], None],
    ) -> None:
        """Start what was reserved; when it is over it is released, and `then` may start the next."""
        self._group.start_soon(self.execute, activity, work, then)

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
        return next(reversed(self._results.values()), None)

    async def execute(
        self,
        activity: Activity,
        work: Callable[[], Awaitable[None]],
        then: Callable[[], None],
    ) -> None:
        """Do what was reserved in the caller's task; returns when it is over, or was stopped."""
        try:
            with activity.scope:
                await work()
        finally:
            # Whoever fenced it off releases it, after telling its end: nothing new may begin before that.
            if not activity.abandoned:
                with anyio.move_on_after(SETTLE_S, shield=True):
                    await self._settle()
            if not activity.abandoned:
                self.release(activity)
        then()
