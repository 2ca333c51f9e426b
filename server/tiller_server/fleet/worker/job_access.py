"""Access of the steps to a job, its forge and its checkout: each use checks that the job is still this worker's."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock
from agent_core.kernel.errors import StorageError, UsageError
from tiller_server.fleet.errors import FenceLost, FleetError, JobEnded
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.limits import MAX_ATTEMPTS
from tiller_server.fleet.posting.journal import JournalHost
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.posts import PostStore
from tiller_server.fleet.store.results import ResultStore
from tiller_server.fleet.values import ACTIVE_STATES, Job, JobState, SlotLease
from tiller_server.fleet.worker.checkouts import (
    Checkout,
    Checkouts,
    CommitMissing,
    RepositoryMissing,
)
from tiller_server.fleet.worker.outages import Outages
from tiller_server.review.posting.code_host import CheckReport, CodeHost
from tiller_server.review.posting.errors import HostLimited, HostUnsure, PostingFailed
from tiller_server.review.posting.http_client import RequestRules, WriteGuard
from tiller_server.review.posting.post import open_host

WATCH_S: Final = 3.0
MOST_LIMIT_WAIT_S: Final = 5.0
"""A longer wait for a limit of the forge is not spent in the worker."""
HeadReader = Callable[[], Awaitable[str]]


class ChangeMoved(JobEnded):
    """The change has a newer head than the job is for."""


class JobAccess:
    """Access to the jobs of one worker process."""

    def __init__(
        self,
        database: FleetDatabase,
        *,
        forges: Mapping[str, Forge],
        checkouts: Checkouts,
        is_fresh: Callable[[], bool],
        clock: Clock,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            database: It is migrated.
            forges: By name.
            checkouts: Of this machine.
            is_fresh: Returns whether the slot is surely this process's; asked before every write to a forge.
            clock: Time.
            max_attempts: Attempts of a job; the failure of the last one is written on the check of its commit.
        """
        self.jobs: Final = JobStore(database)
        self.posts: Final = PostStore(database)
        self.results: Final = ResultStore(database)
        self.outages: Final = Outages(database)
        self.checkouts: Final = checkouts
        self.clock: Final = clock
        self._forges = forges
        self._is_fresh = is_fresh
        self._max_attempts = max_attempts

    async def job(self, job: int) -> Job:
        """Return a job that is at work.

        Raises:
            JobEnded: It has ended; its checkout is removed then.
        """
        there = await run_sync(self.jobs.job, job)
        if there.state not in ACTIVE_STATES:
            await self.checkouts.remove(there)
            message = f"job {job} is {there.state}: {there.reason}"
            raise JobEnded(message)
        return there

    async def forge(self, job: Job, lease: SlotLease) -> Forge:
        """Return the forge of a job.

        Raises:
            JobEnded: The settings have none of its name; the job has failed then.
        """
        forge = self._forges.get(job.forge)
        if forge is None:
            reason = f"the settings have no forge {job.forge!r}"
            raise await self.end(job, lease, "failed", reason)
        return forge

    async def check_out(self, job: Job, lease: SlotLease) -> Checkout:
        """Check the commit of a job out, if it is not yet.

        Raises:
            JobEnded: The commit or the repository is gone; the job is superseded or has failed then.
            JobDeferred: The disk is full, or the forge cannot be reached.
        """
        try:
            return await self.checkouts.make(job, await self.forge(job, lease))
        except CommitMissing as error:
            raise await self.end(job, lease, "superseded", str(error)) from error
        except RepositoryMissing as error:
            raise await self.end(job, lease, "failed", str(error)) from error

    async def end(self, job: Job, lease: SlotLease, state: JobState, reason: str) -> JobEnded:
        """End a job early; returns the error that ends its steps."""
        if state == "failed":
            await self.report_failure(job, lease, reason)
        await self.checkouts.remove(job)
        await run_sync(partial(self.posts.drop_intended, reason=reason), job, lease)
        _ = await run_sync(partial(self.jobs.finish, reason=reason), job.id, lease, state)
        return JobEnded(f"job {job.id} {state}: {reason}")

    async def report_failure(self, job: Job, lease: SlotLease, reason: str) -> None:
        """Write on the check of the commit that a review failed, if the token may; a forge that fails is not asked again."""
        forge = self._forges.get(job.forge)
        # The check is the review's: another kind of job of the same commit has its reason in the tables alone.
        if job.kind != "review" or forge is None or forge.target(job.change) is None:
            return
        report = CheckReport(
            head=job.head,
            external_id=str(job.id),
            conclusion="neutral",
            title=f"The {job.kind} failed",
            text=reason,
        )
        with anyio.move_on_after(MOST_LIMIT_WAIT_S):
            try:
                async with self.host(job, lease) as host:
                    _ = await host.check(report)
            except (PostingFailed, ChangeMoved):
                return

    @asynccontextmanager
    async def failure_reported(self, job: Job, lease: SlotLease) -> AsyncGenerator[None]:
        """Report an error that ends the last attempt of a job; other errors say what follows themselves."""
        try:
            yield
        except (FleetError, PostingFailed, UsageError, SQLAlchemyError, StorageError):
            raise
        except Exception as error:
            if job.attempts >= self._max_attempts:
                await self.report_failure(job, lease, f"{type(error).__name__}: {error}")
            raise

    @asynccontextmanager
    async def delivered(self, job: Job, lease: SlotLease) -> AsyncGenerator[None]:
        """Turn the errors of a forge into what follows for the job: it waits, has failed or is superseded."""
        circuit = f"forge:{job.forge}"
        try:
            async with self.failure_reported(job, lease):
                yield
        except ChangeMoved as error:
            raise await self.end(job, lease, "superseded", str(error)) from error
        except HostLimited as error:
            wait_ms = int(error.wait_s * 1000)
            raise await self.outages.deferred(circuit, str(error), limit_ms=wait_ms) from error
        except HostUnsure as error:
            raise await self.outages.deferred(circuit, str(error)) from error
        except PostingFailed as error:
            raise await self.end(job, lease, "failed", str(error)) from error

    async def watch(self, job: Job, stop: Callable[[], Awaitable[object]]) -> None:
        """Wait until a job has ended or the slot may be another process's, then call `stop`."""
        while True:
            await self.clock.sleep(WATCH_S)
            there = await run_sync(self.jobs.job, job.id)
            if there.state not in ACTIVE_STATES or not self._is_fresh():
                _ = await stop()
                return

    def rules(self, job: Job, lease: SlotLease, read_head: HeadReader | None) -> RequestRules:
        """Return the rules for requests to a forge: before each that writes, the head and the lease are checked.

        Args:
            job: The job that the requests are for.
            lease: The slot of this process.
            read_head: Reads the head of the change; None: there is no change.
        """
        return RequestRules(guard=self.guard(job, lease, read_head), most_wait_s=MOST_LIMIT_WAIT_S)

    def guard(self, job: Job, lease: SlotLease, read_head: HeadReader | None) -> WriteGuard:
        """Return a check that raises `ChangeMoved` or `FenceLost` when nothing may be written to the forge; see `rules`."""

        async def check() -> None:
            head = job.head if read_head is None else await read_head()
            if head != job.head:
                message = f"the change moved on to {head[:12]}"
                raise ChangeMoved(message)
            if not self._is_fresh():
                message = f"slot {lease.slot} may be another process's"
                raise FenceLost(message)

        return check

    @asynccontextmanager
    async def host(self, job: Job, lease: SlotLease) -> AsyncGenerator[JournalHost]:
        """Open the change of a job on its forge; each post is in the outbox.

        Raises:
            JobEnded: The job is for no change.
        """
        target = self._forges[job.forge].target(job.change)
        if target is None:
            message = f"job {job.id} is for no change of {job.forge}"
            raise JobEnded(message)
        opened: list[CodeHost] = []
        rules = self.rules(job, lease, lambda: opened[0].head())  # noqa: PLW0108 - it is opened below
        async with open_host(target, self.clock, rules=rules) as host:
            opened.append(host)
            yield JournalHost(host, self.posts, job, lease)


@asynccontextmanager
async def ungrouped() -> AsyncGenerator[None]:
    """Raise the one error of groups as itself: the engine decides by its class."""
    try:
        yield
    except ExceptionGroup as group:
        raise _single(group) from group


def _single(error: Exception) -> Exception:
    inner: Sequence[Exception] = error.exceptions if isinstance(error, ExceptionGroup) else ()
    return _single(inner[0]) if len(inner) == 1 else error
