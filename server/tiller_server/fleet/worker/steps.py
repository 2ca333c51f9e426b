"""The steps of a job. Each may be repeated after a kill: the tables, the session and the forge show the work that is done."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import override

from agent_core.assembly import SessionRequest
from agent_core.events import Budgets
from agent_core.kernel import Clock
from agent_core.kernel.errors import StorageError, UsageError
from agent_core.memory.access import open_if_on
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.storage import SessionStore
from tiller_server.fleet.errors import FenceLost, FleetError, JobEnded
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.forges import Forge, forge_of
from tiller_server.fleet.limits import MAX_ATTEMPTS
from tiller_server.fleet.posting.journal import SUMMARY, JournalHost, inline
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.posts import PostKey, PostStore
from tiller_server.fleet.store.results import FindingRow, JobCost, ResultStore
from tiller_server.fleet.values import ACTIVE_STATES, Job, JobState, SlotLease
from tiller_server.fleet.worker.checkouts import Checkouts, CommitMissing, RepositoryMissing
from tiller_server.fleet.worker.job_session import JobSessionStore
from tiller_server.fleet.worker.outages import Outages
from tiller_server.fleet.worker.worker import WorkerParts
from tiller_server.review.engine import review
from tiller_server.review.findings.rejection_memory import read_rejections
from tiller_server.review.findings.rejections import RejectedFinding
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.options import NullReviewWatcher, ReviewCancellation, ReviewOrder
from tiller_server.review.outputs.json_report import read_json, render_json
from tiller_server.review.outputs.summary import headline
from tiller_server.review.posting.code_host import CheckReport, CodeHost
from tiller_server.review.posting.errors import HostLimited, HostUnsure, PostingFailed
from tiller_server.review.posting.http_client import RequestRules
from tiller_server.review.posting.post import open_host, post_to

LOG: Final = logging.getLogger(__name__)
REVIEW: Final = "review"
WATCH_S: Final = 3.0
MOST_LIMIT_WAIT_S: Final = 5.0
"""A longer wait for a limit of the forge is not spent in the worker."""


class ChangeMoved(JobEnded):
    """The change has a newer head than the job is for."""


class SessionWatcher(NullReviewWatcher):
    """Remembers the session in which the model is asked."""

    session: AgentSession | None = None

    @override
    def opened(self, session: AgentSession) -> None:
        self.session = session


def make_steps(parts: WorkerParts) -> "JobSteps":
    """Return the steps of the jobs of a worker."""
    config = parts.config
    folder = Path(config.folder)
    return JobSteps(
        parts.database,
        forges={
            name: forge_of(name, settings, parts.env) for name, settings in config.forges.items()
        },
        folder=folder,
        sessions=lambda _: parts.sessions,
        is_fresh=parts.keeper.is_fresh,
        request=SessionRequest(
            workspace=folder, env=parts.env, model=config.model, clock=parts.clock
        ),
        order=ReviewOrder(budgets=Budgets(usd=config.job_usd)),
        max_attempts=config.limits.max_attempts,
    )


class JobSteps:
    """Runs the steps of jobs for one worker process."""

    def __init__(
        self,
        database: FleetDatabase,
        *,
        forges: Mapping[str, Forge],
        folder: Path,
        sessions: Callable[[SlotLease], SessionStore],
        is_fresh: Callable[[], bool],
        request: SessionRequest,
        order: ReviewOrder | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            database: It is migrated.
            forges: By name.
            folder: Of the checkouts.
            sessions: Returns the store of sessions for a slot.
            is_fresh: Returns whether the slot is surely this process's; asked before every write to a forge.
            request: How sessions are opened: the environment, the model, the clock.
            order: Limits of reviews; base, head and budget are those of the job.
            max_attempts: Attempts of a job; the failure of the last one is written on the check of its commit.
        """
        self._database = database
        self._jobs = JobStore(database)
        self._posts = PostStore(database)
        self._results = ResultStore(database)
        self._outages = Outages(database)
        self._forges = forges
        self._checkouts = Checkouts(folder, env=request.env)
        self._sessions = sessions
        self._is_fresh = is_fresh
        self._request = request
        self._order = order or ReviewOrder()
        self._max_attempts = max_attempts

    async def checkout(self, job: int, lease: SlotLease) -> None:
        """Check the commit out."""
        there = await self._there(job)
        if await run_sync(self._results.result, there, REVIEW) is not None:
            return
        forge = await self._forge(there, lease)
        try:
            _ = await self._checkouts.make(there, forge)
        except CommitMissing as error:
            raise await self._end(there, lease, "superseded", str(error)) from error
        except RepositoryMissing as error:
            raise await self._end(there, lease, "failed", str(error)) from error

    async def review(self, job: int, lease: SlotLease) -> None:
        """Run the review of the job from the last entry of its session on, and store its result."""
        there = await self._there(job)
        if await run_sync(self._results.result, there, REVIEW) is not None:
            return
        if there.kind != "review":
            reason = f"this version runs no jobs of kind {there.kind}"
            raise await self._end(there, lease, "failed", reason)
        checkout = await self._checkouts.make(there, await self._forge(there, lease))
        store = JobSessionStore(self._sessions(lease), there.session)
        request = replace(
            self._request,
            workspace=checkout.folder,
            session=await store.choice(),
            store=store,
            trusted=False,
        )
        budgets = replace(self._order.budgets, usd=there.budget_usd or self._order.budgets.usd)
        order = replace(
            self._order,
            base=checkout.base,
            head=there.head,
            budgets=budgets,
            rejected=await self._rejected(checkout.folder),
        )
        try:
            async with self._failure_reported(there, lease), _ungrouped():
                made = await self._reviewed(there, order, request)
        except (
            UsageError
        ) as error:  # no model, no key, no common commit: another attempt ends alike
            raise await self._end(there, lease, "failed", str(error)) from error
        await self._check_stop(there, lease, made)
        await self._outages.ended(f"provider:{there.provider}")
        save = partial(
            self._results.save,
            content=render_json(made).encode(),
            findings=[_row(finding) for finding in made.findings],
            cost=JobCost(
                calls=made.header.turns,
                tokens=made.header.tokens,
                usd=made.header.cost_usd or 0.0,
            ),
        )
        _ = await run_sync(partial(save, there, lease, REVIEW))

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        """Store the posts that the result asks for, in one transaction."""
        there = await self._there(job)
        made = await self._made(there)
        if self._forges[there.forge].target(there.change) is not None:
            keys = [inline(finding.fingerprint) for finding in made.findings]
            check = PostKey(target="check", fingerprint=there.head)
            keys = [*dict.fromkeys(keys), SUMMARY, check]
            await run_sync(self._posts.prepare, there, lease, keys)
        _ = await run_sync(self._jobs.advance, job, lease, "posting")
        pass_point("post.intended")

    async def deliver(self, job: int, lease: SlotLease) -> None:
        """Send the posts that are not on the forge, and confirm those that are."""
        there = await self._there(job)
        made = await self._made(there)
        target = self._forges[there.forge].target(there.change)
        if target is None:
            return
        circuit = f"forge:{there.forge}"
        try:
            async with self._failure_reported(there, lease), self._host(there, lease) as host:
                posted = await post_to(host, made, target, clock=self._clock)
                await self._outages.ended(circuit)
                if not posted.is_outdated:
                    _ = await host.check(_check_report(there, made))
                    await host.settle()
                    return
        except ChangeMoved as error:
            raise await self._end(there, lease, "superseded", str(error)) from error
        except HostLimited as error:
            wait_ms = int(error.wait_s * 1000)
            raise await self._outages.deferred(circuit, str(error), limit_ms=wait_ms) from error
        except HostUnsure as error:
            raise await self._outages.deferred(circuit, str(error)) from error
        except PostingFailed as error:
            raise await self._end(there, lease, "failed", str(error)) from error
        raise await self._end(there, lease, "superseded", posted.lines[0])

    async def close(self, job: int, lease: SlotLease) -> None:
        """Remove the checkout, and end the job."""
        there = await self._there(job)
        made = await self._made(there)
        await self._checkouts.remove(there)
        digest = sha256(render_json(made).encode()).hexdigest()
        finish = partial(self._jobs.finish, reason=made.partial or "", result=digest)
        _ = await run_sync(finish, job, lease, "done")

    async def report_failure(self, job: int, lease: SlotLease, reason: str) -> None:
        """Write on the check of the commit that the job failed, if the token may; a forge that fails is not asked again."""
        there = await self._there(job)
        forge = self._forges.get(there.forge)
        if forge is None or forge.target(there.change) is None:
            return
        report = CheckReport(
            head=there.head,
            external_id=str(there.id),
            conclusion="neutral",
            title=f"The {there.kind} failed",
            text=reason,
        )
        with anyio.move_on_after(MOST_LIMIT_WAIT_S):
            try:
                async with self._host(there, lease) as host:
                    _ = await host.check(report)
            except (PostingFailed, ChangeMoved):
                return

    @asynccontextmanager
    async def _failure_reported(self, job: Job, lease: SlotLease) -> AsyncGenerator[None]:
        """Report an error that ends the last attempt of a job; other errors say what follows themselves."""
        try:
            yield
        except (FleetError, PostingFailed, UsageError, SQLAlchemyError, StorageError):
            raise
        except Exception as error:
            if job.attempts >= self._max_attempts:
                await self.report_failure(job.id, lease, f"{type(error).__name__}: {error}")
            raise

    @property
    def _clock(self) -> Clock:
        return self._request.clock

    async def _there(self, job: int) -> Job:
        there = await run_sync(self._jobs.job, job)
        if there.state not in ACTIVE_STATES:
            await self._checkouts.remove(there)
            message = f"job {job} is {there.state}: {there.reason}"
            raise JobEnded(message)
        return there

    async def _forge(self, job: Job, lease: SlotLease) -> Forge:
        forge = self._forges.get(job.forge)
        if forge is None:
            reason = f"the settings have no forge {job.forge!r}"
            raise await self._end(job, lease, "failed", reason)
        return forge

    async def _made(self, job: Job) -> Review:
        content = await run_sync(self._results.result, job, REVIEW)
        if content is None:
            message = f"job {job.id} has no result"
            raise JobEnded(message)
        return read_json(content, name=f"the result of job {job.id}")

    async def _rejected(self, folder: Path) -> tuple[RejectedFinding, ...]:
        """Return the findings that a person rejected in the project before; none without memory."""
        request = self._request
        paths = request.paths or app_paths(request.env)
        if not await anyio.Path(paths.memory / "projects.json").exists():
            return ()
        memory = await open_if_on(
            paths.memory, folder, env=request.env, clock=request.clock, redactor=request.redactor
        )
        if memory is None:
            return ()
        rejected, problems = await read_rejections(memory)
        for problem in problems:
            LOG.warning("%s", problem)
        return rejected

    async def _reviewed(self, job: Job, order: ReviewOrder, request: SessionRequest) -> Review:
        """Review, and stop when the job has ended meanwhile."""
        stop, watcher = ReviewCancellation(), SessionWatcher()
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, job, stop, watcher)
            made = await review(order, request, watcher=watcher, stop=stop)
            group.cancel_scope.cancel()
            return made
        raise AssertionError  # the group ends with its block

    async def _watch(self, job: Job, stop: ReviewCancellation, watcher: SessionWatcher) -> None:
        while True:
            await self._clock.sleep(WATCH_S)
            there = await run_sync(self._jobs.job, job.id)
            if there.state not in ACTIVE_STATES or not self._is_fresh():
                stop.asked = True
                if watcher.session is not None:
                    _ = await watcher.session.abort()
                return

    async def _check_stop(self, job: Job, lease: SlotLease, made: Review) -> None:
        """Check that a review ended in a way that is posted."""
        why = made.partial or made.stopped or ""
        if made.stopped == "cancelled":
            _ = await self._there(job.id)
            message = f"the review of job {job.id} was stopped: {why}"
            raise FenceLost(message)
        if made.stopped == "outage":
            raise await self._outages.deferred(f"provider:{job.provider}", why)
        if made.stopped in {"failed", "refused"}:
            raise await self._end(job, lease, "failed", why)

    async def _end(self, job: Job, lease: SlotLease, state: JobState, reason: str) -> JobEnded:
        """End a job early; returns the error that ends its steps."""
        if state == "failed":
            await self.report_failure(job.id, lease, reason)
        await self._checkouts.remove(job)
        await run_sync(partial(self._posts.drop_intended, reason=reason), job, lease)
        _ = await run_sync(partial(self._jobs.finish, reason=reason), job.id, lease, state)
        return JobEnded(f"job {job.id} {state}: {reason}")

    @asynccontextmanager
    async def _host(self, job: Job, lease: SlotLease) -> AsyncGenerator[JournalHost]:
        target = self._forges[job.forge].target(job.change)
        if target is None:
            message = f"reviews are not posted on {job.forge}"
            raise JobEnded(message)
        opened: list[CodeHost] = []

        async def guard() -> None:
            head = await opened[0].head()
            if head != job.head:
                message = f"the change moved on to {head[:12]}"
                raise ChangeMoved(message)
            if not self._is_fresh():
                message = f"slot {lease.slot} may be another process's"
                raise FenceLost(message)

        rules = RequestRules(guard=guard, most_wait_s=MOST_LIMIT_WAIT_S)
        async with open_host(target, self._clock, rules=rules) as host:
            opened.append(host)
            yield JournalHost(host, self._posts, job, lease)


@asynccontextmanager
async def _ungrouped() -> AsyncGenerator[None]:
    """Raise the one error of groups as itself: the engine decides by its class."""
    try:
        yield
    except ExceptionGroup as group:
        raise _single(group) from group


def _single(error: Exception) -> Exception:
    inner: Sequence[Exception] = error.exceptions if isinstance(error, ExceptionGroup) else ()
    return _single(inner[0]) if len(inner) == 1 else error


def _row(finding: Finding) -> FindingRow:
    return FindingRow(
        fingerprint=finding.fingerprint,
        path=finding.path,
        line=finding.line,
        severity=finding.severity,
        text_hash=sha256(finding.message.encode(errors="replace")).hexdigest(),
    )


def _check_report(job: Job, made: Review) -> CheckReport:
    return CheckReport(
        head=job.head,
        external_id=str(job.id),
        conclusion="neutral" if made.findings or made.partial else "success",
        title=headline(made),
        text=made.partial or made.summary or headline(made),
    )
