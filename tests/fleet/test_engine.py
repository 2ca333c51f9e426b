"""The engine DBOS on both databases: order of the steps, limits, deferrals, failures, drain and cancelling."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Event

import anyio
import anyio.lowlevel
import pytest
from anyio.to_thread import run_sync
from sqlalchemy import update

from tests.fleet.test_jobs import wanted
from tiller_server.fleet.engine.dbos_engine import DbosEngine, EngineOptions
from tiller_server.fleet.errors import JobDeferred
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.handover import HandoverStore
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.store.tables import JOB
from tiller_server.fleet.values import Job, SlotLease

LIMITS = FleetLimits(per_repo=1, per_org=2, max_attempts=2)
AFTER_ADMISSION = ["checkout", "review", "prepare_posts", "deliver", "close"]


@dataclass(slots=True, kw_only=True)
class RecordedSteps:
    """Steps that write down their calls and end the job."""

    jobs: JobStore
    calls: list[tuple[int, str]] = field(default_factory=list)
    reviews: set[int] = field(default_factory=set)
    most: int = 0
    during_review: Callable[[int], None] = lambda job: None
    is_held: bool = False
    reviewing: Event = field(default_factory=Event)
    """Set while a review runs; the engine has a loop of its own."""
    review_left: Event = field(default_factory=Event)

    async def checkout(self, job: int, lease: SlotLease) -> None:
        self.calls.append((job, "checkout"))

    async def review(self, job: int, lease: SlotLease) -> None:
        self.calls.append((job, "review"))
        self.reviews.add(job)
        self.most = max(self.most, len(self.reviews))
        self.reviewing.set()
        try:
            self.during_review(job)
            if self.is_held:
                await anyio.sleep_forever()
            await anyio.lowlevel.checkpoint()
        finally:
            self.reviews.discard(job)
            self.review_left.set()

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        self.calls.append((job, "prepare_posts"))
        _ = await run_sync(self.jobs.advance, job, lease, "posting")

    async def deliver(self, job: int, lease: SlotLease) -> None:
        self.calls.append((job, "deliver"))

    async def give_up(self, job: int, lease: SlotLease, reason: str) -> None:
        self.calls.append((job, "give_up"))
        _ = await run_sync(lambda: self.jobs.finish(job, lease, "failed", reason=reason))

    async def close(self, job: int, lease: SlotLease) -> None:
        self.calls.append((job, "close"))
        _ = await run_sync(self.jobs.finish, job, lease, "done")


@dataclass(slots=True, kw_only=True)
class Bench:
    """A worker's engine in this process."""

    url: str
    database: FleetDatabase
    jobs: JobStore
    slots: SlotStore
    steps: RecordedSteps
    engine: DbosEngine
    lost: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, *, sessions: int = 4, grace_s: float = 5) -> AsyncGenerator[None]:
        lease = await run_sync(lambda: self.slots.adopt(host="here", boot="1"))
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: self.engine.run(lease, sessions=sessions))
            with anyio.fail_after(60):
                yield
                await self.engine.stop(grace_s=grace_s)
        await run_sync(self.slots.release, lease)

    async def ended(self, *jobs: Job) -> list[Job]:
        return [await self.engine.watch(job.id) for job in jobs]


@pytest.fixture
def bench(database: FleetDatabase, database_url: str) -> Bench:
    jobs = JobStore(database, limits=LIMITS)
    slots = SlotStore(database)
    slots.make(1)
    steps = RecordedSteps(jobs=jobs)
    lost: list[str] = []
    engine = DbosEngine(
        database_url,
        jobs,
        HandoverStore(database),
        steps,
        EngineOptions(limits=LIMITS, poll_s=0.05, retry_wait_ms=10),
        on_lost=lost.append,
    )
    return Bench(
        database=database,
        url=database_url,
        jobs=jobs,
        slots=slots,
        steps=steps,
        engine=engine,
        lost=lost,
    )


async def test_each_job_runs_its_steps_once_and_a_repository_one_job_at_a_time(
    bench: Bench,
) -> None:
    early = [bench.jobs.submit(wanted(number)).job for number in (1, 2)]
    async with bench.running():
        late = bench.jobs.submit(wanted(3, repo="team/other")).job
        bench.engine.submit(late)
        bench.engine.submit(late)
        ended = await bench.ended(*early, late)
    assert [(job.state, job.attempts) for job in ended] == [("done", 1)] * 3
    for job in ended:
        assert [step for number, step in bench.steps.calls if number == job.id] == AFTER_ADMISSION
    assert bench.lost == []
    assert bench.steps.most <= 2


async def test_a_deferred_job_is_queued_again_without_an_attempt(bench: Bench) -> None:
    job = bench.jobs.submit(wanted()).job
    outages = ["the provider is down"]

    def fail(_: int) -> None:
        if outages:
            raise JobDeferred(outages.pop(), wait_ms=10)

    bench.steps.during_review = fail
    async with bench.running():
        (ended,) = await bench.ended(job)
    assert (ended.state, ended.attempts) == ("done", 1)
    assert [step for _, step in bench.steps.calls].count("review") == 2


async def test_a_job_that_fails_too_often_has_its_error_as_the_reason(bench: Bench) -> None:
    job = bench.jobs.submit(wanted()).job

    def fail(_: int) -> None:
        message = "the tree is broken"
        raise ValueError(message)

    bench.steps.during_review = fail
    async with bench.running():
        (ended,) = await bench.ended(job)
        assert (ended.state, ended.reason) == ("failed", "review: ValueError: the tree is broken")
        assert ended.attempts == 2
        bench.steps.during_review = lambda job: None
        _ = await run_sync(bench.jobs.retry, job.id)
        (again,) = await bench.ended(job)
    assert (again.state, again.round) == ("done", 1)


async def test_a_job_that_no_worker_survived_is_given_up_with_the_reason(bench: Bench) -> None:
    survived, late = (bench.jobs.submit(wanted(number)).job for number in (1, 2))
    with bench.database.begin() as connection:
        lost = update(JOB).where(JOB.c.id == survived.id).values(attempts=2)
        _ = connection.execute(lost)
        _ = connection.execute(update(JOB).where(JOB.c.id == late.id).values(deadline_ms=1))
    async with bench.running():
        ended = await bench.ended(survived, late)
    assert [(job.state, job.reason) for job in ended] == [
        ("failed", "it was begun 2 times and no worker survived it"),
        ("failed", "its deadline passed before a worker was free"),
    ]
    assert sorted(bench.steps.calls) == [(survived.id, "give_up"), (late.id, "give_up")]


async def test_a_drained_worker_queues_its_jobs_again_and_the_next_one_ends_them(
    bench: Bench,
) -> None:
    job = bench.jobs.submit(wanted()).job
    bench.steps.is_held = True
    async with bench.running(grace_s=0.1):
        assert await run_sync(bench.steps.reviewing.wait, 30)
    there = bench.jobs.job(job.id)
    assert (there.state, there.reason, there.attempts) == ("queued", "its worker was drained", 0)
    bench.steps.is_held = False
    async with bench.running():
        (ended,) = await bench.ended(job)
    assert (ended.state, ended.attempts) == ("done", 1)


async def test_a_cancelled_job_ends_in_its_running_step(bench: Bench) -> None:
    job = bench.jobs.submit(wanted()).job
    bench.steps.is_held = True
    async with bench.running():
        assert await run_sync(bench.steps.reviewing.wait, 30)
        _ = await run_sync(lambda: bench.jobs.cancel(job.id, reason="it is not needed"))
        assert await run_sync(bench.steps.review_left.wait, 30)
    assert bench.jobs.job(job.id).state == "cancelled"
    assert [step for _, step in bench.steps.calls] == ["checkout", "review"]
