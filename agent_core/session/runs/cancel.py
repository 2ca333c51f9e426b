"""Stopping what goes on, within a bound, and saying truthfully what was stopped."""

from typing import Literal

import anyio
from msgspec.structs import replace

from agent_core.events import Failure, QueueItem, RunEnded, RunResult
from agent_core.hooks import SessionEnding
from agent_core.kernel import ItemId, RunId
from agent_core.kernel.values import Value
from agent_core.loop.batch import CANCELLED
from agent_core.messages import Text, ToolResultMessage
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import (
    interruption_entry,
    message_entry,
    run_ended_entry,
    unqueued_entries,
)
from agent_core.session.input.queue_events import pause_queue, publish_queue
from agent_core.session.runs.recovered_state import recover_state
from agent_core.session.runs.slot import Activity, ActivitySlot
from agent_core.session.tools.processes import EndedProcess
from agent_core.session.tools.user_bash import UserBash

LAST_HOOKS_S = 2.0
"""How long the hooks of a session that ends may take together."""
WAIT_S = 5.0
"""How long a cancel waits before it fences the run off."""

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
    """It did not end in time. A run was fenced off and can say nothing more; a tool call still holds its run up."""
    returned: tuple[QueueItem, ...] = ()
    """Words that waited, given back."""


async def cancel_activity(
    parts: SessionContext,
    runs: ActivitySlot,
    *,
    bash: UserBash,
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
    activity = runs.current
    everything = scope == "session" and run is None and item is None
    if activity is None or (
        activity.run != run if run else scope == "run" and activity.run is None
    ):
        result = CancelResult(status="alreadyEnded", run=run, seq=parts.publisher.feed.seq)
        if everything:
            return await _with_bash(result, parts, bash, grace_s=grace_s, wait_s=wait_s)
        return result
    if item is not None:
        return await _stop_item(parts, activity, item, grace_s=grace_s, wait_s=wait_s)
    if grace_s is not None:
        parts.place.processes.ask_grace(grace_s)
    activity.is_interrupted = activity.is_interrupted or wanted == "stop"
    waiting = await _settle_queue(parts, queue)
    _ = parts.place.processes.drain()
    activity.scope.cancel()
    with anyio.move_on_after(wait_s):
        await activity.over.wait()
    timed_out = not activity.over.is_set()
    survivors = parts.place.processes.left() if timed_out else ()
    if timed_out:
        await _abandon(parts, runs, activity)
    ended = parts.place.processes.drain()
    result = CancelResult(
        status="cancelled",
        run=activity.run,
        seq=parts.publisher.feed.seq,
        ended=ended,
        survivors=survivors + _left(ended),
        timed_out=timed_out,
        returned=waiting,
    )
    if everything:
        return await _with_bash(result, parts, bash, grace_s=grace_s, wait_s=wait_s)
    return result


async def end_everything(parts: SessionContext, runs: ActivitySlot, *, bash: UserBash) -> None:
    """End what goes on because the session closes, and let the file go."""
    with anyio.CancelScope(shield=True):
        if runs.current is not None or bash.is_running:
            _ = await cancel_activity(parts, runs, bash=bash, scope="session", wanted="close")
        with anyio.move_on_after(LAST_HOOKS_S):
            _ = await parts.hooks.ask(SessionEnding())
        await parts.recorder.close()
    parts.publisher.feed.close()


async def _with_bash(
    result: CancelResult,
    parts: SessionContext,
    bash: UserBash,
    *,
    grace_s: float | None,
    wait_s: float,
) -> CancelResult:
    """End the user's own command too, and say so."""
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
        seq=parts.publisher.feed.seq,
        ended=result.ended + ended,
        survivors=result.survivors + bash.processes.left() + _left(ended),
    )


def _left(ended: tuple[EndedProcess, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((pid, one.command) for one in ended for pid in one.killed.survivors)


async def _stop_item(
    parts: SessionContext, activity: Activity, item: ItemId, *, grace_s: float | None, wait_s: float
) -> CancelResult:
    """End one tool call, with what it started; the run goes on."""
    stop = activity.cancel_handles.get(item)
    if stop is None:
        return CancelResult(status="alreadyEnded", run=activity.run, seq=parts.publisher.feed.seq)
    call = parts.publisher.picture.call_of(item)
    processes = parts.place.processes
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
        seq=parts.publisher.feed.seq,
        ended=ended,
        survivors=(processes.left(call) if timed_out else ()) + _left(ended),
        timed_out=timed_out,
    )


async def _settle_queue(parts: SessionContext, fate: QueueFate) -> tuple[QueueItem, ...]:
    inbox = parts.inbox
    if fate == "keep" or not inbox.items():
        pause_queue(parts)
        return ()
    taken = inbox.drain()
    inbox.paused = not inbox.is_empty()
    why = "returned" if fate == "return" else "dropped"
    _ = await parts.recorder.keep(*unqueued_entries(taken, why))
    publish_queue(parts)
    return taken if fate == "return" else ()


async def _abandon(parts: SessionContext, runs: ActivitySlot, activity: Activity) -> None:
    """Stop waiting for an activity: answer its open calls, publish its end, and drop its later events."""
    if activity.abandoned:
        # Two cancels lost patience at once: the end is told by the first.
        await activity.over.wait()
        return
    activity.abandoned = True
    pause_queue(parts)
    for call in recover_state(parts.recorder.path()).unanswered:
        result = ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=(Text(text=CANCELLED),),
            is_error=True,
            unfinished="cancelled",
            at_ms=parts.clock.now_ms(),
        )
        _ = await parts.recorder.keep(message_entry(result))
    await parts.deferred.flush("turn", "run", run=activity.run, publish=parts.publisher.publish)
    if activity.run is not None:
        usage = parts.tally.of_run(parts.models.context_window)
        used = parts.tally.used(parts.clock.monotonic_s())
        counts = await parts.changes.counts_of(activity.run)
        failure = Failure(
            kind="CancelTimeout", message="the run did not stop in time and was cut off"
        )
        marks = (interruption_entry,) if activity.is_interrupted else ()
        _ = await parts.recorder.keep(*marks, run_ended_entry(activity.run, "cancelled"))
        runs.finish(
            RunResult(
                run=activity.run,
                status="cancelled",
                text="",
                usage=usage,
                changes=counts,
                error=failure,
            )
        )
        _ = parts.publisher.publish(
            RunEnded(
                run=activity.run,
                status="cancelled",
                usage=usage,
                changes=counts,
                error=failure,
                duration_ms=used.duration_ms,
                turns=used.answers,
                tool_calls=used.calls,
            )
        )
    parts.publisher.set_state("idle")
    runs.release(activity)
