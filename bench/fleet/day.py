"""Replay of a day: the statements and decisions are those of the fleet, only time, reviews and the forge are scripted."""

import heapq
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Any, Final

from sqlalchemy import bindparam

from bench.fleet.outcome import CALLS, OutcomeWriter
from bench.fleet.pushes import Push
from tiller_server.fleet.errors import JobEnded
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import Deferral, Job, JobRequest, SlotLease

DEBOUNCE_MS: Final = 90_000
REVIEW_MEDIAN_MS: Final = 150_000
REVIEW_SIGMA: Final = 0.6
"""Durations of reviews are log-normal, with a mean of three minutes."""
POSTING_MS: Final = 4_000
TURN_MS: Final = 7_000
"""A review that is superseded ends with its turn."""
DAYS_MS: Final = 48 * 60 * 60 * 1000
"""Leases of the replay outlast it: renewals are not part of it."""
Act = Callable[[], Awaitable[None] | None]
START_MS: Final = 1_767_225_600_000
"""Midnight of the day that is replayed."""


@dataclass(slots=True, kw_only=True)
class Times:
    """Real durations of the statements, in seconds."""

    submit: list[float] = field(default_factory=list[float])
    admit: list[float] = field(default_factory=list[float])
    finish: list[float] = field(default_factory=list[float])
    post: list[float] = field(default_factory=list[float])
    """Of all posts of a review."""


@dataclass(slots=True, kw_only=True)
class DayResult:
    """What the replay saw."""

    pushes: int = 0
    done: int = 0
    superseded_queued: int = 0
    superseded_running: int = 0
    written: int = 0
    """Reviews whose session, result and posts were written."""
    model_calls: int = 0
    deferrals: int = 0
    queue_ages_ms: list[int] = field(default_factory=list[int])
    """From the time a job was due to its start."""
    busy_ms: int = 0
    """Time of all sessions at work."""
    most_running: int = 0
    ended_ms: int = 0
    """Virtual time from midnight until the last job had ended."""
    times: Times = field(default_factory=Times)


@dataclass(slots=True, kw_only=True)
class Running:
    """A job at work."""

    job: Job
    lease: SlotLease
    began_ms: int
    ends_ms: int
    is_superseded: bool = False


class FleetDay:
    """One replay. Time is the time of the next event."""

    def __init__(
        self, url: str, *, workers: int, sessions: int, limits: FleetLimits, written: int
    ) -> None:
        """Prepare an empty database, and one slot for each worker process.

        Args:
            url: Of the database.
            workers: Processes.
            sessions: Reviews at once of each.
            limits: Limits of the fleet.
            written: One in so many changes has its sessions, results and posts written.
        """
        self._now_ms = START_MS
        self.database = FleetDatabase(
            url, now=lambda _: bindparam("now_ms", callable_=lambda: self._now_ms)
        )
        self.database.migrate()
        self._jobs = JobStore(self.database, limits=limits)
        slots = SlotStore(self.database, lease_ms=DAYS_MS)
        slots.make(workers)
        self._places = [slots.adopt(host="replay", boot=str(n)) for n in range(workers)] * sessions
        self._events: list[tuple[int, int, Act]] = []
        self._order = count()
        self._due: list[tuple[int, int]] = []
        """The queue of the engine: jobs by the time from which they may start."""
        self._running: dict[int, Running] = {}
        self._chance = random.Random(7)  # noqa: S311 - the same day each time
        self._written = written
        self.outcomes = OutcomeWriter(self.database, self._jobs, seed=8)
        self.result = DayResult()

    async def replay(self, pushes: Sequence[Push]) -> DayResult:
        """Replay the pushes, and work until all jobs have ended."""
        for push in pushes:
            self._at(START_MS + push.at_ms, lambda push=push: self._submit(push))
        while self._events:
            self._now_ms, _, act = heapq.heappop(self._events)
            if (more := act()) is not None:
                await more
            self._begin_due()
        self.result.ended_ms = self._now_ms - START_MS
        return self.result

    def _at(self, time_ms: int, act: Act) -> None:
        heapq.heappush(self._events, (time_ms, next(self._order), act))

    def _submit(self, push: Push) -> None:
        request = JobRequest(
            kind="review",
            change=push.change,
            head=push.head,
            base="main",
            cause="webhook",
            delay_ms=DEBOUNCE_MS,
        )
        self.outcomes.push(push.change, push.head)
        submission = _timed(self.result.times.submit, self._jobs.submit, request)
        self.result.pushes += 1
        self._queue(submission.job.id, submission.job.due_ms)
        for number in submission.superseded:
            running = self._running.get(number)
            if running is None:
                self.result.superseded_queued += 1
                continue
            running.is_superseded = True
            ends_ms = min(running.ends_ms, self._now_ms + self._chance.randrange(TURN_MS))
            self._at(ends_ms, lambda running=running: self._end(running))

    def _queue(self, job: int, due_ms: int) -> None:
        heapq.heappush(self._due, (due_ms, job))
        self._at(due_ms, lambda: None)

    def _begin_due(self) -> None:
        while self._places and self._due and self._due[0][0] <= self._now_ms:
            _, number = heapq.heappop(self._due)
            lease = self._places.pop()
            try:
                admitted = _timed(self.result.times.admit, self._jobs.admit, number, lease)
            except JobEnded:
                self._places.append(lease)
                continue
            if isinstance(admitted, Deferral):
                self.result.deferrals += 1
                self._places.append(lease)
                self._queue(number, self._now_ms + admitted.wait_ms)
                continue
            self._begin(admitted, lease)

    def _begin(self, job: Job, lease: SlotLease) -> None:
        self.result.queue_ages_ms.append(self._now_ms - job.due_ms)
        review_ms = round(REVIEW_MEDIAN_MS * self._chance.lognormvariate(0, REVIEW_SIGMA))
        running = Running(
            job=job,
            lease=lease,
            began_ms=self._now_ms,
            ends_ms=self._now_ms + review_ms + POSTING_MS,
        )
        self._running[job.id] = running
        self.result.most_running = max(self.result.most_running, len(self._running))
        self._at(running.ends_ms - POSTING_MS, lambda: self._post(running))
        self._at(running.ends_ms, lambda: self._end(running))

    async def _post(self, running: Running) -> None:
        if running.is_superseded:
            return
        job, lease = running.job, running.lease
        if job.number % self._written == 0:
            await self.outcomes.review(job, lease)
        _ = _timed(self.result.times.finish, self._jobs.advance, job.id, lease, "posting")

    async def _end(self, running: Running) -> None:
        if self._running.pop(running.job.id, None) is None:
            return
        job, lease = running.job, running.lease
        if job.number % self._written == 0 and not running.is_superseded:
            began = perf_counter()
            await self.outcomes.post(job, lease)
            self.result.times.post.append(perf_counter() - began)
            self.result.written += 1
        self._places.append(running.lease)
        duration_ms = self._now_ms - running.began_ms
        self.result.busy_ms += duration_ms
        share = duration_ms / (running.ends_ms - running.began_ms)
        self.result.model_calls += round(CALLS * min(share, 1))
        try:
            _ = _timed(
                self.result.times.finish,
                self._jobs.finish,
                job.id,
                lease,
                "done",
            )
            self.result.done += 1
        except JobEnded:
            self.result.superseded_running += 1


def _timed(times: list[float], act: Callable[..., Any], *arguments: Any) -> Any:
    began = perf_counter()
    try:
        return act(*arguments)
    finally:
        times.append(perf_counter() - began)
