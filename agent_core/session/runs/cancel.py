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
from agent_core.session.context import Parts
from agent_core.session.history.entries import (
    interruption_entry,
    message_entry,
    run_ended_entry,
    unqueued_entries,
)
from agent_core.session.input.queue_events import pause_queue, tell_queue
from agent_core.session.runs.recovered_state import restore
from agent_core.session.runs.slot import Activity, Runs
from agent_core.session.tools.processes import Ended
from agent_core.session.tools.user_bash import UserBash

LAST_HOOKS_S = 2.0
"""How long the hooks of a session that ends may take together."""
WAIT_S = 5.0
"""How long a cancel waits before it fences the run off."""

QueueFate = Literal["keep", "return", "drop"]
Scope = Literal["run", "session"]
Wanted = Literal["stop", "close"]
"""Why an activity is ended: a stop was requested, or the session closes."""


class CancelResult(Value, frozen=True, kw_only=True):
    """Result of a cancel."""

    status: Literal["cancelled", "alreadyEnded"]
    run: RunId | None
    seq: int
    """The newest event; when something was cancelled, its last one is at or before this."""
    ended: tuple[Ended, ...] = ()
    """Process trees that were ended."""
    survivors: tuple[tuple[int, str], ...] = ()
    """Processes that could not be ended: id and command."""
    timed_out: bool = False
    """It did not end in time. A run was fenced off and can say nothing more; a tool call still holds its run up."""
    returned: tuple[QueueItem, ...] = ()
    """Words that waited, given back."""


async def cancel_activity(
    parts: Parts,
    runs: Runs,
    *,
    bash: UserBash,
    run: RunId | None = None,
    item: ItemId | None = None,
    scope: Scope,
    queue: QueueFate = "keep",
    grace_s: float | None = None,
    wait_s: float | None = None,
    wanted: Wanted = "stop",
) -> CancelResult:
    """Stop the activity, or one tool call of it; in the scope of a session also the user's own command. Idempotent."""
    wait_s = WAIT_S if wait_s is None else wait_s
    activity = runs.current
    everything = scope == "session" and run is None and item is None
    if activity is None or (
        activity.run != run if run else scope == "run" and activity.run is None
    ):
        result = CancelResult(status="alreadyEnded", run=run, seq=parts.voice.feed.seq)
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
        await _fence(parts, runs, activity)
    ended = parts.place.processes.drain()
    result = CancelResult(
        status="cancelled",
        run=activity.run,
        seq=parts.voice.feed.seq,
        ended=ended,
        survivors=survivors + _left(ended),
        timed_out=timed_out,
        returned=waiting,
    )
    if everything:
        return await _with_bash(result, parts, bash, grace_s=grace_s, wait_s=wait_s)
    return result


async def end_everything(parts: Parts, runs: Runs, *, bash: UserBash) -> None:
    """End what goes on because the session closes, and let the file go."""
    with anyio.CancelScope(shield=True):
        if runs.current is not None or bash.is_running:
            _ = await cancel_activity(parts, runs, bash=bash, scope="session", wanted="close")
        with anyio.move_on_after(LAST_HOOKS_S):
            _ = await parts.hooks.ask(SessionEnding())
        await parts.recorder.close()
    parts.voice.feed.close()


async def _with_bash(
    result: CancelResult,
    parts: Parts,
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
        seq=parts.voice.feed.seq,
        ended=result.ended + ended,
        survivors=result.survivors + bash.processes.left() + _left(ended),
    )


def _left(ended: tuple[Ended, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((pid, one.command) for one in ended for pid in one.killed.survivors)


async def _stop_item(
    parts: Parts, activity: Activity, item: ItemId, *, grace_s: float | None, wait_s: float
) -> CancelResult:
    """End one tool call, with what it started; the run goes on."""
    stop = activity.stops.get(item)
    if stop is None:
        return CancelResult(status="alreadyEnded", run=activity.run, seq=parts.voice.feed.seq)
    call = parts.voice.picture.call_of(item)
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
        seq=parts.voice.feed.seq,
        ended=ended,
        survivors=(processes.left(call) if timed_out else ()) + _left(ended),
        timed_out=timed_out,
    )


async def _settle_queue(parts: Parts, fate: QueueFate) -> tuple[QueueItem, ...]:
    inbox = parts.inbox
    if fate == "keep" or not inbox.items():
        pause_queue(parts)
        return ()
    taken = inbox.drain()
    inbox.paused = not inbox.is_empty()
    why = "returned" if fate == "return" else "dropped"
    _ = await parts.recorder.keep(*unqueued_entries(taken, why))
    tell_queue(parts)
    return taken if fate == "return" else ()


async def _fence(parts: Parts, runs: Runs, activity: Activity) -> None:
    """Stop waiting for an activity: answer its open calls, publish its end, and drop its later events."""
    if activity.fenced:
        # Two cancels lost patience at once: the end is told by the first.
        await activity.over.wait()
        return
    activity.fenced = True
    pause_queue(parts)
    for call in restore(parts.recorder.path()).unanswered:
        result = ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=(Text(text=CANCELLED),),
            is_error=True,
            unfinished="cancelled",
            at_ms=parts.clock.now_ms(),
        )
        _ = await parts.recorder.keep(message_entry(result))
    await parts.aside.take_up("turn", "run", run=activity.run, say=parts.voice.say)
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
        _ = parts.voice.say(
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
    parts.voice.say_state("idle")
    runs.release(activity)
