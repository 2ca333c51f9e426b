"""Stopping what goes on, within a bound, and saying truthfully what was stopped."""

from collections.abc import Awaitable, Callable
from typing import Literal

import anyio
from msgspec.structs import replace

from agent_core.events import QueueItem
from agent_core.hooks import HookRunner, SessionEnding
from agent_core.kernel import ItemId, RunId
from agent_core.kernel.values import Value
from agent_core.session.context import SessionServices
from agent_core.session.history.entries import (
    unqueued_entries,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.queue import InputQueue
from agent_core.session.runs.executor import RunEndWriter
from agent_core.session.runs.slot import Activity, ActivitySlot
from agent_core.session.tools.processes import EndedProcess, ProcessLog
from agent_core.session.tools.user_bash import UserBash

LAST_HOOKS_S = 2.0
"""How long the hooks of a session that ends may take together."""
WAIT_S = 5.0
"""How long a cancel waits before it abandons the run."""

QueueFate = Literal["keep", "return", "drop"]
CancelTarget = Literal["run", "session"]
CancelReason = Literal["stop", "close"]
"""Why an activity is ended: a stop was requested, or the session closes."""


class CancelResult(Value, frozen=True, kw_only=True):
    """Result of a cancel."""

    status: Literal["cancelled", "alreadyEnded"]
    run: RunId | None
    seq: int
    """The newest event; when something was cancelled, its last one is at or before this."""
    ended: tuple[EndedProcess, ...] = ()
    """Process trees that were ended."""
    survivors: tuple[tuple[int, str], ...] = ()
    """Processes that could not be ended: id and command."""
    timed_out: bool = False
    """It did not end in time. A run was abandoned, and its later events are dropped; a tool call still holds its run up."""
    returned: tuple[QueueItem, ...] = ()
    """Words that waited, given back."""


class ActivityCanceller:
    """Ends what goes on in a session, within a time bound."""

    def __init__(
        self,
        services: SessionServices,
        *,
        runs: ActivitySlot,
        bash: UserBash,
        ending: RunEndWriter,
        processes: ProcessLog,
        queue: InputQueue,
        recorder: Recorder,
        hooks: HookRunner,
        end_background: Callable[[], Awaitable[None]],
    ) -> None:
        self._services = services
        self._runs = runs
        self._bash = bash
        self._ending = ending
        self._processes = processes
        self._queue = queue
        self._recorder = recorder
        self._hooks = hooks
        self._end_background = end_background

    async def cancel(
        self,
        *,
        run: RunId | None = None,
        item: ItemId | None = None,
        scope: CancelTarget,
        queue: QueueFate = "keep",
        grace_s: float | None = None,
        wait_s: float | None = None,
        wanted: CancelReason = "stop",
    ) -> CancelResult:
        """Stop the activity, or one tool call of it; in the scope of a session also the user's own command. Idempotent."""
        wait_s = WAIT_S if wait_s is None else wait_s
        activity = self._runs.current
        everything = scope == "session" and run is None and item is None
        if activity is None or (
            activity.run != run if run else scope == "run" and activity.run is None
        ):
            result = CancelResult(
                status="alreadyEnded", run=run, seq=self._services.publisher.feed.seq
            )
            if everything:
                return await self._with_bash(result, grace_s=grace_s, wait_s=wait_s)
            return result
        if item is not None:
            return await self._stop_item(activity, item, grace_s=grace_s, wait_s=wait_s)
        if grace_s is not None:
            self._processes.ask_grace(grace_s)
        activity.is_interrupted = activity.is_interrupted or wanted == "stop"
        waiting = await self._settle_queue(queue)
        _ = self._processes.drain()
        activity.scope.cancel()
        with anyio.move_on_after(wait_s):
            await activity.over.wait()
        timed_out = not activity.over.is_set()
        survivors = self._processes.left() if timed_out else ()
        if timed_out:
            await self._ending.abandon(activity)
        ended = self._processes.drain()
        result = CancelResult(
            status="cancelled",
            run=activity.run,
            seq=self._services.publisher.feed.seq,
            ended=ended,
            survivors=survivors + _left(ended),
            timed_out=timed_out,
            returned=waiting,
        )
        if everything:
            return await self._with_bash(result, grace_s=grace_s, wait_s=wait_s)
        return result

    async def end_everything(self) -> None:
        """End what goes on because the session closes, and let the file go."""
        with anyio.CancelScope(shield=True):
            if self._runs.current is not None or self._bash.is_running:
                _ = await self.cancel(scope="session", wanted="close")
            await self._end_background()
            with anyio.move_on_after(LAST_HOOKS_S):
                _ = await self._hooks.ask(SessionEnding())
            await self._recorder.close()
        self._services.publisher.feed.close()

    async def _with_bash(
        self,
        result: CancelResult,
        *,
        grace_s: float | None,
        wait_s: float,
    ) -> CancelResult:
        """End the user's own command too, and say so."""
        bash = self._bash
        if not bash.is_running:
            return result
        if grace_s is not None:
            bash.processes.ask_grace(grace_s)
        _ = bash.processes.drain()
        bash.cancel()
        with anyio.move_on_after(wait_s):
            await bash.wait()
        ended = bash.processes.drain()
        return replace(
            result,
            status="cancelled",
            seq=self._services.publisher.feed.seq,
            ended=result.ended + ended,
            survivors=result.survivors + bash.processes.left() + _left(ended),
        )

    async def _stop_item(
        self, activity: Activity, item: ItemId, *, grace_s: float | None, wait_s: float
    ) -> CancelResult:
        """End one tool call, with what it started; the run goes on."""
        stop = activity.cancel_handles.get(item)
        if stop is None:
            return CancelResult(
                status="alreadyEnded", run=activity.run, seq=self._services.publisher.feed.seq
            )
        call = self._services.publisher.snapshot.call_of(item)
        processes = self._processes
        if grace_s is not None:
            processes.ask_grace(grace_s, call=call)
        stop.end()
        with anyio.move_on_after(wait_s):
            await stop.over.wait()
        timed_out = not stop.over.is_set()
        ended = processes.drain(call)
        return CancelResult(
            status="cancelled",
            run=activity.run,
            seq=self._services.publisher.feed.seq,
            ended=ended,
            survivors=(processes.left(call) if timed_out else ()) + _left(ended),
            timed_out=timed_out,
        )

    async def _settle_queue(self, fate: QueueFate) -> tuple[QueueItem, ...]:
        queue = self._queue
        if fate == "keep" or not queue.items():
            self._queue.pause()
            return ()
        taken = queue.drain()
        queue.paused = not queue.is_empty()
        why = "returned" if fate == "return" else "dropped"
        _ = await self._recorder.keep(*unqueued_entries(taken, why))
        self._queue.publish()
        return taken if fate == "return" else ()


def _left(ended: tuple[EndedProcess, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((pid, one.command) for one in ended for pid in one.killed.survivors)
