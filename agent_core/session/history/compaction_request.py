"""A compaction that somebody asked for: a run going on is ended first, and the summary is made in the background."""

from collections.abc import Awaitable, Callable

from agent_core.compaction import NothingToCompact
from agent_core.kernel import RunId
from agent_core.kernel.errors import SessionBusy
from agent_core.kernel.values import Value
from agent_core.session.context import SessionContext
from agent_core.session.history.compaction import GOING_ON, Compaction
from agent_core.session.runs.slot import TITLES, ActivitySlot

OVERTAKEN = "something else began meanwhile; compact again when it is over"


class CompactReceipt(Value, frozen=True, kw_only=True):
    """A compaction has begun, or why not."""

    compaction: str | None
    seq: int
    why: str = ""
    cancelled_run: RunId | None = None
    """The run that was ended first."""


async def request_compaction(
    parts: SessionContext,
    runs: ActivitySlot,
    compaction: Compaction,
    *,
    instructions: str | None,
    keep_recent_tokens: int | None,
    end_run: Callable[[], Awaitable[object]],
    go_on: Callable[[], None],
) -> CompactReceipt:
    """Begin a compaction, as `AgentSession.compact` says."""
    current = runs.current
    if compaction.goes_on or (current is not None and current.kind == "compaction"):
        raise SessionBusy(GOING_ON)
    if current is not None and current.kind != "run":
        message = f"{TITLES[current.kind]} is going on; wait for its end, or cancel it"
        raise SessionBusy(message)
    cancelled = None if current is None else current.run
    if current is not None:
        _ = await end_run()
    _ = parts.models.required()
    preparation = compaction.prepare(keep_recent_tokens)
    seq = parts.publisher.feed.seq
    if isinstance(preparation, NothingToCompact):
        return CompactReceipt(
            compaction=None, seq=seq, why=preparation.why, cancelled_run=cancelled
        )
    if runs.current is not None:
        raise SessionBusy(OVERTAKEN)
    activity = runs.reserve("compaction", None)

    async def work() -> None:
        _ = await compaction.compact(
            activity,
            "manual",
            instructions=instructions,
            keep_recent_tokens=keep_recent_tokens,
        )

    runs.start(activity, work, then=go_on)
    return CompactReceipt(compaction=parts.new_id(), seq=seq, cancelled_run=cancelled)
