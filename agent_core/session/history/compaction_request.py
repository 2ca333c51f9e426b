"""A compaction that somebody asked for: a run going on is ended first, and the summary is made in the background."""

from functools import partial

from agent_core.compaction import NothingToCompact
from agent_core.kernel import RunId
from agent_core.kernel.errors import SessionBusy
from agent_core.kernel.values import Value
from agent_core.session.context import SessionServices
from agent_core.session.history.compaction import GOING_ON, Compaction
from agent_core.session.history.recorder import Background
from agent_core.session.model_selection import ModelSelection
from agent_core.session.runs.cancel import ActivityCanceller
from agent_core.session.runs.executor import RunStarter
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot

OVERTAKEN = "something else began meanwhile; compact again when it is over"


class CompactReceipt(Value, frozen=True, kw_only=True):
    """A compaction has begun, or why not."""

    compaction: str | None
    seq: int
    why: str = ""
    cancelled_run: RunId | None = None
    """The run that was ended first."""


class CompactionRequests:
    """Starter of compactions that a person or a program requests."""

    def __init__(
        self,
        services: SessionServices,
        compaction: Compaction,
        *,
        models: ModelSelection,
        runs: ActivitySlot,
        canceller: ActivityCanceller,
        starter: RunStarter,
        background: Background,
    ) -> None:
        self._services = services
        self._compaction = compaction
        self._models = models
        self._runs = runs
        self._canceller = canceller
        self._starter = starter
        self._background = background

    async def request(
        self, *, instructions: str | None, keep_recent_tokens: int | None
    ) -> CompactReceipt:
        """Start a compaction, as `AgentSession.compact` describes."""
        self._starter.check_open()
        current = self._runs.current
        if self._compaction.goes_on or (current is not None and current.kind == "compaction"):
            raise SessionBusy(GOING_ON)
        if current is not None and current.kind != "run":
            message = f"{TITLES[current.kind]} is going on; wait for its end, or cancel it"
            raise SessionBusy(message)
        cancelled = None if current is None else current.run
        if current is not None:
            _ = await self._canceller.cancel(scope="run")
        _ = self._models.required()
        preparation = self._compaction.prepare(keep_recent_tokens)
        seq = self._services.publisher.feed.seq
        if isinstance(preparation, NothingToCompact):
            return CompactReceipt(
                compaction=None, seq=seq, why=preparation.why, cancelled_run=cancelled
            )
        if self._runs.current is not None:
            raise SessionBusy(OVERTAKEN)
        activity = self._runs.reserve("compaction", None)
        self._background.start(partial(self._run, activity, instructions, keep_recent_tokens))
        return CompactReceipt(compaction=self._services.new_id(), seq=seq, cancelled_run=cancelled)

    async def _run(
        self, activity: Activity, instructions: str | None, keep_recent_tokens: int | None
    ) -> None:
        async with self._runs.hold(activity):
            _ = await self._compaction.compact(
                activity,
                "manual",
                instructions=instructions,
                keep_recent_tokens=keep_recent_tokens,
            )
        self._starter.go_on()
