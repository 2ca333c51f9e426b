"""Reviews an hour, the cost of the engine, and submission and admission beside many rows: `python -m bench.fleet.throughput`."""

import argparse
import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import anyio
import httpx
from anyio.to_thread import run_sync

from agent_core.kernel import SystemClock
from bench.kit import percentile
from tests.support.fleet.demo import SCRIPT, demo_fleet
from tiller_server.fleet.engine.dbos_engine import DbosEngine, EngineOptions
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.handover import HandoverStore
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import ChangeName, Job, JobRequest, SlotLease

MODEL_S: Final = 0.05
"""Time of the model for an answer."""
JOBS: Final = 60
SAMPLES: Final = 200
CLAIM_POLL_S: Final = 0.01
"""The pause is a part of the figure; workers look every second unless a job has just ended."""
NO_LIMITS: Final = FleetLimits(per_repo=0, per_org=0)
LEASE_MS: Final = 3_600_000
"""Nothing renews it here."""
HOUR_S: Final = 3600
CLOCK: Final = SystemClock()


@dataclass(slots=True)
class EmptySteps:
    """Steps of a job that only write what the engine has to know."""

    jobs: JobStore
    began: dict[int, float] = field(default_factory=dict[int, float])
    ended: dict[int, float] = field(default_factory=dict[int, float])
    may_go_on: threading.Event = field(default_factory=threading.Event)
    """Until then the first job keeps the only place; the engine runs steps in a loop of its own."""

    async def checkout(self, job: int, lease: SlotLease) -> None:
        """Note when the job began."""
        del lease
        self.began[job] = perf_counter()

    async def review(self, job: int, lease: SlotLease) -> None:
        """Wait until jobs may go on."""
        del job, lease
        _ = await run_sync(self.may_go_on.wait)

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        """Set the state that follows."""
        _ = await run_sync(self.jobs.advance, job, lease, "posting")

    async def deliver(self, job: int, lease: SlotLease) -> None:
        """Do nothing."""
        del job, lease

    async def give_up(self, job: int, lease: SlotLease, reason: str) -> None:
        """End the job as failed."""
        _ = await run_sync(partial(self.jobs.finish, reason=reason), job, lease, "failed")

    async def close(self, job: int, lease: SlotLease) -> None:
        """End the job."""
        _ = await run_sync(self.jobs.finish, job, lease, "done")
        self.ended[job] = perf_counter()


async def reviews_an_hour(changes: int) -> float:
    """Return how many reviews two workers make an hour, webhooks and posts included."""
    names = [f"change{number}" for number in range(changes)]
    script = [turn | {"delay_s": MODEL_S} for turn in SCRIPT]
    with tempfile.TemporaryDirectory() as folder:
        async with (
            demo_fleet(Path(folder), changes=names, script=script) as fleet,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            await fleet.push(client, names[0])
            _ = await fleet.ended(client)  # both workers have loaded what they need
            began = perf_counter()
            for name in names[1:]:
                await fleet.push(client, name)
            jobs = await fleet.ended(client)
            lasted_s = perf_counter() - began
            done = sum(job["state"] == "done" for job in jobs) - 1
            return done / lasted_s * HOUR_S


@asynccontextmanager
async def empty_engine(
    url: str, *, jobs: int, poll_s: float
) -> AsyncGenerator[tuple[DbosEngine, EmptySteps, Sequence[Job]]]:
    """Run an engine with one place, over so many jobs whose steps do nothing.

    Args:
        url: An empty database.
        jobs: Jobs that are queued first.
        poll_s: Pause between two looks of the engine.
    """
    database = FleetDatabase(url)
    database.migrate()
    store = JobStore(database, limits=NO_LIMITS)
    slots = SlotStore(database, lease_ms=LEASE_MS)
    slots.make(1)
    steps, handover = EmptySteps(store), HandoverStore(database)
    options = EngineOptions(limits=NO_LIMITS, poll_s=poll_s)
    engine = DbosEngine(url, store, handover, steps, options, on_lost=_end)
    lease = slots.adopt(host="here", boot="1")
    made = [store.submit(_request(number, "a")).job for number in range(jobs)]
    async with anyio.create_task_group() as group:
        group.start_soon(partial(engine.run, lease, sessions=1))
        while await run_sync(partial(handover.waiting, limit=1)):
            await CLOCK.sleep(0.1)
        steps.may_go_on.set()
        yield engine, steps, made
        await engine.stop(grace_s=5)
    slots.release(lease)
    database.close()


async def engine_ms(url: str) -> list[float]:
    """Return the milliseconds of each of many jobs whose steps do nothing, one after the other."""
    async with empty_engine(url, jobs=JOBS, poll_s=0.05) as (engine, steps, made):
        for job in made:
            _ = await engine.watch(job.id)
    return [(steps.ended[job.id] - steps.began[job.id]) * 1000 for job in made[1:]]


@contextmanager
def timed_claims() -> Generator[list[float]]:
    """Collect the milliseconds of each claim of the engine that took a job."""
    # No public name leads there.
    database: Any = import_module("dbos._sys_db").SystemDatabase
    claim = database.start_queued_workflows
    times: list[float] = []

    def timed(*arguments: Any, **options: Any) -> Any:
        began = perf_counter()
        claimed = claim(*arguments, **options)
        if claimed[0]:
            times.append((perf_counter() - began) * 1000)
        return claimed

    database.start_queued_workflows = timed
    try:
        yield times
    finally:
        database.start_queued_workflows = claim


async def claim_ms(url: str, *, rows: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of the engine's claims, and those from the end of a job to the beginning of the next.

    Args:
        url: An empty database.
        rows: Jobs that wait in the queue of the engine.
    """
    async with empty_engine(url, jobs=rows, poll_s=CLAIM_POLL_S) as (_, steps, _):
        with timed_claims() as claims:
            while len(steps.ended) <= SAMPLES:
                await CLOCK.sleep(0.1)
        began, ended = sorted(steps.began.values()), sorted(steps.ended.values())
    pauses = zip(ended, began[1 : SAMPLES + 1], strict=False)
    return claims, [(following - end) * 1000 for end, following in pauses]


def row_ms(url: str, *, rows: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of submissions and of admissions while so many jobs are queued."""
    database = FleetDatabase(url)
    database.migrate()
    jobs, slots = (
        JobStore(database, limits=FleetLimits(per_repo=1, per_org=16)),
        SlotStore(database, lease_ms=LEASE_MS),
    )
    slots.make(1)
    lease = slots.adopt(host="here", boot="1")
    made = [jobs.submit(_request(number, "b")).job.id for number in range(rows)]
    submits: list[float] = []
    admits: list[float] = []
    for number in range(SAMPLES):
        began = perf_counter()
        _ = jobs.submit(_request(rows + number, "b"))
        submits.append((perf_counter() - began) * 1000)
        began = perf_counter()
        _ = jobs.admit(made[number * rows // SAMPLES], lease)
        admits.append((perf_counter() - began) * 1000)
    slots.release(lease)
    database.close()
    return submits, admits


def _end(reason: str) -> None:
    """End the process: in the loop of the engine an exception would only end that loop."""
    sys.stderr.write(f"{reason}\n")
    os._exit(1)


def _request(number: int, head: str) -> JobRequest:
    change = ChangeName(
        forge="forge", repo=f"org{number % 50}/repo{number % 2500}", number=number + 1
    )
    return JobRequest(kind="review", change=change, head=head * 40, base="main", cause="bench")


def _line(what: str, samples: list[float]) -> str:
    return f"{what:<62} {median(samples):7.1f} [p95 {percentile(samples, 95):.1f}] ms\n"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet.throughput", description=__doc__)
    _ = parser.add_argument("--database", metavar="URL", help="an empty one [a file of SQLite]")
    _ = parser.add_argument("--changes", type=int, default=41, help="changes to review")
    _ = parser.add_argument("--rows", type=int, default=10_000, help="queued jobs")
    options = parser.parse_args()
    out = sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        url = options.database or f"sqlite:///{folder}/engine.db"
        _ = out.write(
            _line("job whose steps do nothing, in the engine", asyncio.run(engine_ms(url)))
        )
        url = options.database or f"sqlite:///{folder}/claims.db"
        claims, pauses = asyncio.run(claim_ms(url, rows=options.rows))
        beside = f"beside {options.rows:,} in the queue of the engine"
        _ = out.write(_line(f"claim {beside}", claims))
        _ = out.write(_line(f"end of a job to the next {beside}", pauses))
        url = options.database or f"sqlite:///{folder}/rows.db"
        submits, admits = row_ms(url, rows=options.rows)
        _ = out.write(_line(f"submission beside {options.rows:,} queued jobs", submits))
        _ = out.write(_line(f"admission beside {options.rows:,} queued jobs", admits))
    count = asyncio.run(reviews_an_hour(options.changes))
    _ = out.write(f"{'reviews an hour, two workers, 50 ms an answer':<62} {count:7.0f}\n")


if __name__ == "__main__":
    main()
