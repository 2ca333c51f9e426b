"""Repair of a session at its opening: activities that a dead process left open are ended, in its file and in events."""

from agent_core.events import Notice, RunEnded, RunResult
from agent_core.kernel import RunId
from agent_core.messages import AssistantMessage, Text, ToolResultMessage
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import DAEMON_RESTART, message_entry, run_interrupted_entry
from agent_core.session.runs.recovered_state import RecoveredState
from agent_core.session.runs.slot import ActivitySlot

INTERRUPTED = (
    "Interrupted: the program that ran this call ended before it was over. Its effects, if any, may be half done; "
    "look before you repeat it."
)
GO_ON = "the last run was interrupted when its process ended; retry it, or say «go on», to continue"


async def settle(parts: SessionContext) -> None:
    """Move the messages that were deferred to the end of a turn or run into the conversation."""
    await parts.deferred.flush("turn", "run", run=None, publish=parts.publisher.publish)


async def recover(parts: SessionContext, runs: ActivitySlot, restored: RecoveredState) -> None:
    """Finish what a process that died left open: every call gets a result, every run an end."""
    for call in restored.unanswered:
        result = ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=(Text(text=INTERRUPTED),),
            is_error=True,
            unfinished="cancelled",
            at_ms=parts.clock.now_ms(),
        )
        _ = await parts.recorder.keep(message_entry(result))
    if restored.interrupted is not None:
        await _end(parts, runs, restored.interrupted)
    for waiting in restored.waiting:
        parts.inbox.put(waiting.item, waiting.message_id)
        parts.inbox.paused = True
    for laid in restored.deferred:
        parts.deferred.put(laid)
    await settle(parts)


async def _end(parts: SessionContext, runs: ActivitySlot, run: RunId) -> None:
    """End the run that the process took along. It is told to whoever listens first."""
    _ = await parts.recorder.keep(run_interrupted_entry(run))
    usage = parts.tally.of_session(parts.models.context_window)
    counts = await parts.changes.counts_of(run)
    runs.finish(
        RunResult(
            run=run,
            status="interrupted",
            text=_last_answer(parts),
            usage=usage,
            changes=counts,
        )
    )
    parts.publisher.backlog += [
        RunEnded(
            run=run,
            status="interrupted",
            usage=usage,
            changes=counts,
            cause=DAEMON_RESTART,
            resumable=True,
        ),
        Notice(level="warning", text=GO_ON),
    ]


def _last_answer(parts: SessionContext) -> str:
    said = (
        one.text for one in reversed(parts.recorder.context()) if isinstance(one, AssistantMessage)
    )
    return next(said, "")
