"""Goes on with a run that was interrupted or failed, without the user's words being said twice."""

from collections.abc import Sequence

from agent_core.kernel import RunId
from agent_core.kernel.errors import RunMismatch, RunNotActive, SessionBusy
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import RUN, run_retried_entry
from agent_core.session.input.prompt_deduplication import retry_id
from agent_core.session.input.queue_events import release_queue
from agent_core.session.input.submission import Receipt
from agent_core.session.runs.slot import TITLES, ActivitySlot
from agent_core.session.runs.starter import RunStarter
from agent_core.transcript.entries import AnyEntry, CustomEntry

FINISHED = frozenset({"completed", "refused"})
"""How a run ended that left nothing undone."""


class LastRun(Value, frozen=True, kw_only=True):
    """The newest run of a branch."""

    run: RunId
    status: str


def last_run(path: Sequence[AnyEntry]) -> LastRun | None:
    """Find the newest run of a branch; None: there was none."""
    for entry in reversed(path):
        if isinstance(entry, CustomEntry) and entry.custom_type == RUN:
            data = as_object(entry.data)
            return LastRun(run=RunId(str(data.get("run"))), status=str(data.get("status")))
    return None


class RunRetrier:
    """Retries runs. A run is retried once: a second request returns the receipt of the run that continues it."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot, starter: RunStarter) -> None:
        self._parts = parts
        self._runs = runs
        self._starter = starter

    async def retry(self, run: RunId) -> Receipt:
        """Go on with a run, as `AgentSession.retry` says."""
        self._starter.check_open()
        parts = self._parts
        again = retry_id(run)
        if await parts.message_index.is_recorded(again):
            seq = parts.publisher.feed.seq
            return Receipt(accepted="duplicate", run=parts.message_index.run_of(again), seq=seq)
        self._check(run)
        activity, new = self._starter.reserve()
        parts.message_index.begin(again)

        async def write() -> None:
            try:
                _ = await parts.recorder.accept(run_retried_entry(new, of=run))
                parts.message_index.record(again, new)
            except BaseException:
                self._runs.release(activity)
                raise
            finally:
                parts.message_index.end(again)

        def begin() -> None:
            release_queue(parts)
            self._starter.start(activity, ())

        await parts.recorder.background.shielded(write, then=begin)
        return Receipt(accepted="started", run=new, seq=parts.publisher.feed.seq)

    def _check(self, run: RunId) -> None:
        current = self._runs.current
        if current is not None:
            what = f"run {current.run!r}" if current.kind == "run" else TITLES[current.kind]
            message = (
                f"{what} is going on; wait for its end or cancel it before run {run!r} is retried"
            )
            raise SessionBusy(message)
        last = last_run(self._parts.recorder.path())
        if last is None or last.run != run:
            newest = None if last is None else last.run
            message = f"run {run!r} cannot be retried: the newest run here is {newest!r}"
            raise RunMismatch(message)
        if last.status in FINISHED:
            message = f"run {run!r} ended as {last.status!r} and left nothing undone; send a prompt instead"
            raise RunNotActive(message)
