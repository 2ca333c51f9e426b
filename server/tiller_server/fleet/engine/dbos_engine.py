"""The engine DBOS behind the port, on SQLite or PostgreSQL. This module loads it at its first run only."""

import logging
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from msgspec import Struct
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock, SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.values import Value
from tiller_server.fleet.engine.port import StepRunner
from tiller_server.fleet.errors import FenceLost, FleetError, JobDeferred, JobEnded, JobSpent
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import OUTAGES, reason_of
from tiller_server.fleet.store.handover import HandoverStore
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.values import OPEN_STATES, Deferral, Job, SlotLease

LOG: Final = logging.getLogger(__name__)
QUEUE: Final = "fleet"
WORKFLOW: Final = "fleet_job"
APPLICATION_VERSION: Final = "fleet/1"
"""Set by hand: the default is a hash of the source, and each deployment would strand the workflows of the former one."""
SCHEMA: Final = "tiller_engine"
STEPS: Final = ("admit", "checkout", "review", "prepare_posts", "deliver", "close")
RECOVERIES: Final = 1_000_000
"""Attempts are counted in our tables."""
NO_LIMIT: Final = 10_000
BUSY_MS: Final = 5_000
LONGEST_BACKOFF_S: Final = 10.0


class StepOutcome(Struct, frozen=True):
    """Result of a step, as the engine records it."""

    state: str = "done"
    """`done`, `ended` or `deferred`."""
    wait_ms: int = 0

    def recorded(self) -> dict[str, str | int]:
        """Return it as the engine stores it."""
        return {"state": self.state, "wait_ms": self.wait_ms}


class EngineOptions(Value, frozen=True, kw_only=True):
    """Times and limits of an engine."""

    limits: FleetLimits
    poll_s: float = 1.0
    """Pause between two looks for work."""
    retry_wait_ms: int = 30_000
    """Pause after the first failure of a job; twice as long after the second."""
    outage_s: float = 300.0
    """Time that the database may be gone before the process ends."""


class JobAtWork(Struct):
    """A step that runs: how it is stopped from another thread."""

    loop: AbstractEventLoop
    scope: anyio.CancelScope

    def stop(self) -> None:
        """Cancel it."""
        _ = self.loop.call_soon_threadsafe(self.scope.cancel)


def engine_url(database: str) -> str:
    """Return where the engine keeps its own tables: a file beside ours, or the same database in a schema of its own."""
    url = make_url(database)
    if url.get_backend_name() == "sqlite":
        file = Path(url.database or "fleet.db")
        return f"sqlite:///{file.with_name(f'{file.stem}-engine{file.suffix}')}"
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def workflow_id(job: Job, turn: int = 0) -> str:
    """Return the name of a workflow: once per job, round and turn, which counts how often it was queued again."""
    return f"job-{job.id}-{job.round}-{turn}"


class DbosEngine:
    """Runs the steps of jobs as workflows. One at a time in a process, because the library is one."""

    def __init__(
        self,
        database: str,
        jobs: JobStore,
        handover: HandoverStore,
        steps: StepRunner,
        options: EngineOptions,
        *,
        takes_work: Callable[[], bool] = lambda: True,
        on_lost: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        """Connect at the first run.

        Args:
            database: URL of our tables.
            jobs: The jobs of these tables.
            handover: The same jobs, on their way into the engine.
            steps: Steps of the jobs.
            options: Times and limits.
            takes_work: Whether this worker may begin jobs now.
            on_lost: Called from any thread with the reason why this process must end at once.
            clock: The time.
        """
        self._database = database
        self._jobs = jobs
        self._handover = handover
        self._steps = steps
        self._options = options
        self._takes_work = takes_work
        self._on_lost = on_lost
        self._clock = clock or SystemClock()
        self._worker = WorkerState()

    def submit(self, job: Job) -> None:
        """Queue a job if this process runs the engine; else a worker does so, which sees it in the tables."""
        if self._worker.lease is not None:
            _enqueue(job, workflow_id(job))

    def cancel(self, job: Job) -> None:
        """Cancel the running step of a job of this worker."""
        at_work = self._worker.at_work.get(job.id)
        if at_work is not None:
            at_work.stop()

    async def run(self, lease: SlotLease, *, sessions: int) -> None:
        """Run jobs until `stop` is called."""
        worker = self._worker = WorkerState(lease=lease)
        try:
            pass_point("launch.before")
            await self._launched(lease, sessions)
            pass_point("launch.after")
            while not worker.is_draining:
                await self._look()
                with anyio.move_on_after(self._options.poll_s):
                    await worker.stopping.wait()
            await self._drain(worker)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(_destroy)
            worker.lease = None
            worker.stopped.set()

    async def stop(self, *, grace_s: float) -> None:
        """Stop taking jobs."""
        self._worker.grace_s = grace_s
        self._worker.is_draining = True
        self._worker.stopping.set()
        await self._worker.stopped.wait()

    async def watch(self, job: int) -> Job:
        """Wait until a job has ended."""
        while True:
            there = await run_sync(self._jobs.job, job)
            if there.state not in OPEN_STATES:
                return there
            await self._clock.sleep(self._options.poll_s)

    async def _launched(self, lease: SlotLease, sessions: int) -> None:
        """Start the library; again when the database went away meanwhile.

        Raises:
            FleetError: It was gone for too long.
        """
        began_s = self._clock.monotonic_s()
        while not self._worker.is_draining:
            try:
                await run_sync(partial(self._launch, lease, sessions))
            except SQLAlchemyError as error:
                if self._clock.monotonic_s() - began_s > self._options.outage_s:
                    message = f"the engine of the fleet cannot be started: {reason_of(error)}"
                    raise FleetError(message) from error
                LOG.warning("the engine is not started yet: %s", reason_of(error))
            else:
                return
            await run_sync(_destroy)
            await self._clock.sleep(0.5)

    async def _look(self) -> None:
        """Hand new jobs over to the engine, and stop the steps of jobs that were ended from outside."""
        try:
            waiting = await run_sync(self._handover.waiting)
            pass_point("hand_over.before")
            for job in waiting:
                await run_sync(_enqueue, job, workflow_id(job))
            if waiting:
                pass_point("hand_over.after")
                await run_sync(self._handover.mark, waiting)
            if at_work := dict(self._worker.at_work):
                for job_id in await run_sync(self._handover.ended, tuple(self._worker.admitted)):
                    if (running := at_work.get(job_id)) is not None:
                        running.stop()
        except (FleetError, SQLAlchemyError) as error:
            LOG.warning("jobs are not looked for: %s", error)

    async def _drain(self, worker: "WorkerState") -> None:
        async with anyio.create_task_group() as group:
            # The library stops looking for work at once, and ends when no workflow runs any more.
            limit_s = int(worker.grace_s) + 10
            group.start_soon(run_sync, partial(_destroy, limit_s=limit_s))
            with anyio.move_on_after(worker.grace_s):
                while worker.at_work:
                    await self._clock.sleep(0.05)
            for running in tuple(worker.at_work.values()):
                running.stop()

    def _launch(self, lease: SlotLease, sessions: int) -> None:
        from dbos import DBOS  # noqa: PLC0415 - at first use: 500 modules

        options = self._options
        _ = DBOS(config=_library_config(self._database, lease))

        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=RECOVERIES)
        async def fleet_job(job: int) -> str:
            return await self._workflow(job, str(DBOS.workflow_id))

        _ = fleet_job
        DBOS.launch()
        _register_queue(options, sessions)

    async def _workflow(self, job: int, name: str) -> str:
        """Run the steps in their order. Deterministic, as the library asks: time and state are read in steps only."""
        from dbos import DBOS  # noqa: PLC0415 - at first use: 500 modules

        _, _, job_round, turn = name.split("-")
        for step in STEPS:
            outcome: dict[str, Any] = await DBOS.run_step_async(
                {"name": step}, self._step, step, job, int(job_round)
            )
            if outcome["state"] != "done":
                again: dict[str, Any] | None = await DBOS.run_step_async(
                    {"name": "settle"}, self._settle, job, int(job_round), int(turn), outcome
                )
                if again is not None:
                    pass_point("requeue.before")
                    options: Any = again
                    _ = await DBOS.enqueue_workflow_with_options_async(options, job)
                    pass_point("requeue.after")
                return str(outcome["state"])
        return "done"

    async def _step(self, step: str, job: int, job_round: int) -> dict[str, str | int]:
        """Run one step until it is done, its job has ended or waits; an outage of the database is outlasted."""
        worker = self._worker
        try:
            with anyio.CancelScope() as scope:
                worker.at_work[job] = JobAtWork(get_running_loop(), scope)
                outcome = await self._outlasted(partial(self._attempt, step, job, job_round))
                return outcome.recorded()
            # Cancelled by us alone: the worker is drained, or the job was ended from outside.
            outcome = await self._outlasted(
                partial(self._put_back, job, "its worker was drained", wait_ms=0)
            )
            return outcome.recorded()
        except FenceLost as error:
            self._on_lost(str(error))
            await anyio.sleep_forever()  # nothing is recorded: this process ends
            raise
        finally:
            _ = worker.at_work.pop(job, None)

    async def _outlasted(self, work: Callable[[], Awaitable[StepOutcome]]) -> StepOutcome:
        began_s, pause_s = self._clock.monotonic_s(), 0.1
        while True:
            tried_s = self._clock.monotonic_s()
            try:
                return await work()
            except (StorageUnavailable, *OUTAGES) as error:
                now_s = self._clock.monotonic_s()
                if now_s - tried_s > self._options.outage_s:  # it worked for long before
                    began_s = now_s
                if now_s - began_s > self._options.outage_s:
                    message = (
                        f"the database of the fleet was gone for {self._options.outage_s:.0f} s"
                    )
                    raise FenceLost(message) from error
                LOG.warning("a step waits for the database: %s", error)
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_BACKOFF_S)

    async def _attempt(self, step: str, job: int, job_round: int) -> StepOutcome:
        worker = self._worker
        lease = worker.needed_lease()
        try:
            if job not in worker.admitted:
                outcome = await self._admit(job, job_round, lease)
                if outcome is not None:
                    return outcome
            if step != "admit":
                pass_point(f"{step}.before")
                await getattr(self._steps, step)(job, lease)
                pass_point(f"{step}.after")
        except JobEnded:
            worker.admitted.discard(job)
            return StepOutcome("ended")
        except JobDeferred as error:
            return await self._put_back(job, str(error), wait_ms=error.wait_ms)
        except (FenceLost, StorageUnavailable, *OUTAGES):
            raise
        except Exception as error:
            LOG.warning("step %s of job %d failed", step, job, exc_info=error)
            return await self._fail(job, f"{step}: {type(error).__name__}: {error}")
        if step == STEPS[-1]:
            worker.admitted.discard(job)
        return StepOutcome()

    async def _admit(self, job: int, job_round: int, lease: SlotLease) -> StepOutcome | None:
        """Admit the job; also in its later steps, when a former worker was lost after its admission."""
        worker = self._worker
        if worker.is_draining:
            return StepOutcome("deferred")
        if not self._takes_work():
            return StepOutcome("deferred", BUSY_MS)
        if (await run_sync(self._jobs.job, job)).round != job_round:
            return StepOutcome("ended")
        pass_point("admit.before")
        try:
            admitted = await run_sync(self._jobs.admit, job, lease)
        except JobSpent as error:
            pass_point("give_up.before")
            await self._steps.give_up(job, lease, str(error))
            return StepOutcome("ended")
        if isinstance(admitted, Deferral):
            return StepOutcome("deferred", admitted.wait_ms)
        worker.admitted.add(job)
        pass_point("admit.after")
        return None

    async def _put_back(self, job: int, reason: str, *, wait_ms: int) -> StepOutcome:
        worker = self._worker
        if job not in worker.admitted:
            return StepOutcome("ended")
        try:
            pass_point("put_back.before")
            back = partial(self._jobs.put_back, reason=reason, wait_ms=wait_ms)
            _ = await run_sync(back, job, worker.needed_lease())
            pass_point("put_back.after")
        except JobEnded:
            return StepOutcome("ended")
        finally:
            worker.admitted.discard(job)
        return StepOutcome("deferred", wait_ms)

    async def _fail(self, job: int, reason: str) -> StepOutcome:
        worker = self._worker
        attempts = (await run_sync(self._jobs.job, job)).attempts
        wait_ms = self._options.retry_wait_ms * max(1, attempts)
        try:
            failed = partial(self._jobs.fail_attempt, reason=reason[:500], wait_ms=wait_ms)
            there = await run_sync(failed, job, worker.needed_lease())
        except JobEnded:
            return StepOutcome("ended")
        finally:
            worker.admitted.discard(job)
        return StepOutcome("deferred", wait_ms) if there.state == "queued" else StepOutcome("ended")

    async def _settle(
        self, job: int, job_round: int, turn: int, outcome: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return the options under which the job is queued again; None: it has ended."""
        queued: dict[str, Any] = {}

        async def look() -> StepOutcome:
            there = await run_sync(self._jobs.job, job)
            # Also after `ended`: a former worker was lost between putting the job back and queuing it again.
            if there.state in OPEN_STATES and there.round == job_round:
                name = workflow_id(there, turn + 1)
                queued.update(_enqueue_options(there, name, wait_ms=int(outcome["wait_ms"])))
            return StepOutcome()

        _ = await self._outlasted(look)
        return queued or None


class WorkerState:
    """State of the engine while it runs in this process."""

    def __init__(self, lease: SlotLease | None = None) -> None:
        """Begin without jobs."""
        self.lease = lease
        self.admitted: set[int] = set()
        """Jobs that this process has, by this lease."""
        self.at_work: dict[int, JobAtWork] = {}
        self.is_draining = False
        self.grace_s = 0.0
        self.stopping = anyio.Event()
        self.stopped = anyio.Event()

    def needed_lease(self) -> SlotLease:
        """Return the lease.

        Raises:
            FenceLost: The engine does not run.
        """
        if self.lease is None:
            message = "the engine does not run in this process"
            raise FenceLost(message)
        return self.lease


def _library_config(database: str, lease: SlotLease) -> Any:
    return {
        "name": "tiller-fleet",
        "system_database_url": engine_url(database),
        "dbos_system_schema": SCHEMA,
        "application_version": APPLICATION_VERSION,
        "executor_id": f"slot-{lease.slot}",
        "sys_db_pool_size": 6,
        "sys_db_idle_transaction_timeout_sec": 5.0,
        "log_level": "ERROR",
        "enable_otlp": False,
    }


def _register_queue(options: EngineOptions, sessions: int) -> None:
    from dbos import DBOS  # noqa: PLC0415 - at first use: 500 modules

    _ = DBOS.register_queue(
        QUEUE,
        worker_concurrency=sessions,
        partition_concurrency=options.limits.per_repo or NO_LIMIT,
        polling_interval_sec=options.poll_s,
        on_conflict="always_update",
    )


def _enqueue_options(job: Job, name: str, *, wait_ms: int = 0) -> dict[str, Any]:
    options: dict[str, Any] = {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": name,
        "app_version": APPLICATION_VERSION,
        "priority": max(1, job.priority),
        "queue_partition_key": f"{job.forge}/{job.repo}",
    }
    if wait_ms > 0:
        options["delay_seconds"] = wait_ms / 1000
    return options


def _enqueue(job: Job, name: str) -> None:
    from dbos import DBOS  # noqa: PLC0415 - at first use: 500 modules

    options: Any = _enqueue_options(job, name)
    _ = DBOS.enqueue_workflow_with_options(options, job.id)


def _destroy(*, limit_s: int = 0) -> None:
    from dbos import DBOS  # noqa: PLC0415 - at first use: 500 modules

    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=limit_s)
