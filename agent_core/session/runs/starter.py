"""Begins runs: with a prompt, with words that waited, or with what another run left undone."""

from agent_core.kernel import RunId
from agent_core.kernel.errors import PriceUnknown, SessionClosed
from agent_core.session.context import SessionContext
from agent_core.session.history.compaction import Compaction
from agent_core.session.input.queue_events import hold_images
from agent_core.session.runs.budgets import unpriced
from agent_core.session.runs.executor import RunExecutor, RunInput
from agent_core.session.runs.slot import Activity, ActivitySlot


class RunStarter:
    """Begins one run after the other. Between finding the session idle and reserving it there is no waiting."""

    def __init__(
        self, parts: SessionContext, runs: ActivitySlot, *, compaction: Compaction
    ) -> None:
        self.closed = False
        self._parts = parts
        self._runs = runs
        self._compaction = compaction

    def check_open(self) -> None:
        """Check that the session is open.

        Raises:
            SessionClosed: The session was closed.
        """
        if self.closed:
            message = f"session {self._parts.session!r} is closed; open it again"
            raise SessionClosed(message)

    def reserve(self) -> tuple[Activity, RunId]:
        """Reserve the session for a new run; the caller has just found it idle.

        Raises:
            ModelUnknown: There is no usable model.
            PriceUnknown: There is a budget of money, and the model has no price.
        """
        model = self._parts.models.required()
        if why := unpriced(self._parts.place.allowance.budgets, model.facts):
            raise PriceUnknown(why)
        run = RunId(self._parts.new_id())
        return self._runs.reserve("run", run), run

    def start(self, activity: Activity, openings: tuple[RunInput, ...]) -> None:
        """Start what was reserved; without openings it goes on from where the transcript stands."""
        executor = RunExecutor(
            self._parts,
            activity,
            runs=self._runs,
            compaction=self._compaction,
        )

        async def work() -> None:
            if unwritten := self._parts.models.take_unwritten():
                _ = await self._parts.recorder.keep(*unwritten)
            await executor.run(openings)

        self._runs.start(activity, work, then=self.go_on)

    def go_on(self) -> None:
        """Begin a run with what waits, when nothing goes on and nothing holds it back."""
        parts = self._parts
        if self.closed or parts.inbox.paused or self._runs.current is not None:
            return
        inputs = parts.inbox.take_next()
        if not inputs:
            hold_images(parts)
            return
        activity = self._runs.reserve("run", RunId(parts.new_id()))
        self.start(activity, tuple(RunInput(user_input=one, entry=None) for one in inputs))
