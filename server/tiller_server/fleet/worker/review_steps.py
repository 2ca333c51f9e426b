"""The steps of a review: findings become comments, a summary and a check."""

import logging
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync
from msgspec.structs import replace
from typing_extensions import override

from agent_core.assembly import SessionRequest
from agent_core.kernel.errors import UsageError
from agent_core.memory.access import open_if_on
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.storage import SessionStore
from tiller_server.fleet.errors import FenceLost, JobEnded
from tiller_server.fleet.posting.journal import SUMMARY, inline
from tiller_server.fleet.store.posts import PostKey
from tiller_server.fleet.store.results import REVIEW, FindingRow, JobCost
from tiller_server.fleet.values import Job, SlotLease
from tiller_server.fleet.worker.job_access import JobAccess, ungrouped
from tiller_server.fleet.worker.job_session import JobSessionStore
from tiller_server.review.engine import review
from tiller_server.review.findings.rejection_memory import read_rejections
from tiller_server.review.findings.rejections import RejectedFinding
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.options import NullReviewWatcher, ReviewCancellation, ReviewOrder
from tiller_server.review.outputs.json_report import read_json, render_json
from tiller_server.review.outputs.summary import headline
from tiller_server.review.posting.code_host import CheckReport
from tiller_server.review.posting.post import post_to

LOG: Final = logging.getLogger(__name__)


class SessionWatcher(NullReviewWatcher):
    """Remembers the session in which the model is asked."""

    session: AgentSession | None = None

    @override
    def opened(self, session: AgentSession) -> None:
        self.session = session


class ReviewSteps:
    """Steps of jobs of kind `review`."""

    def __init__(
        self,
        access: JobAccess,
        sessions: Callable[[SlotLease], SessionStore],
        request: SessionRequest,
        order: ReviewOrder,
    ) -> None:
        """Prepare, with the parts that `JobSteps` has."""
        self._access = access
        self._sessions = sessions
        self._request = request
        self._order = order

    async def has_result(self, job: Job) -> bool:
        """Return whether the review is stored."""
        return await run_sync(self._access.results.result, job, REVIEW) is not None

    async def run(self, job: Job, lease: SlotLease) -> None:
        """Run the review of the job from the last entry of its session on, and store its result."""
        access = self._access
        checkout = await access.check_out(job, lease)
        store = JobSessionStore(self._sessions(lease), job.session)
        request = replace(
            self._request,
            workspace=checkout.folder,
            session=await store.choice(),
            store=store,
            trusted=False,
        )
        budgets = replace(self._order.budgets, usd=job.budget_usd or self._order.budgets.usd)
        order = replace(
            self._order,
            base=checkout.base,
            head=job.head,
            budgets=budgets,
            rejected=await self._rejected(checkout.folder),
        )
        try:
            async with access.failure_reported(job, lease), ungrouped():
                made = await self._reviewed(job, order, request)
        except (
            UsageError
        ) as error:  # no model, no key, no common commit: another attempt ends alike
            raise await access.end(job, lease, "failed", str(error)) from error
        await self._check_stop(job, lease, made)
        await access.outages.ended(f"provider:{job.provider}")
        save = partial(
            access.results.save,
            content=render_json(made).encode(),
            findings=[_row(finding) for finding in made.findings],
            cost=JobCost(
                calls=made.header.turns,
                tokens=made.header.tokens,
                usd=made.header.cost_usd or 0.0,
            ),
        )
        _ = await run_sync(partial(save, job, lease, REVIEW))

    async def prepare_posts(self, job: Job, lease: SlotLease) -> None:
        """Store the posts that the result asks for, in one transaction."""
        made = await self._made(job)
        forge = await self._access.forge(job, lease)
        if forge.target(job.change) is not None:
            keys = [inline(finding.fingerprint) for finding in made.findings]
            check = PostKey(target="check", fingerprint=job.head)
            keys = [*dict.fromkeys(keys), SUMMARY, check]
            await run_sync(self._access.posts.prepare, job, lease, keys)

    async def deliver(self, job: Job, lease: SlotLease) -> None:
        """Send the posts that are not on the forge, and confirm those that are."""
        access = self._access
        made = await self._made(job)
        target = (await access.forge(job, lease)).target(job.change)
        if target is None:
            return
        async with access.delivered(job, lease), access.host(job, lease) as host:
            posted = await post_to(host, made, target, clock=access.clock)
            await access.outages.ended(f"forge:{job.forge}")
            if not posted.is_outdated:
                _ = await host.check(_check_report(job, made))
                await host.settle()
                return
        raise await access.end(job, lease, "superseded", posted.lines[0])

    async def close(self, job: Job, lease: SlotLease) -> None:
        """End the job."""
        made = await self._made(job)
        digest = sha256(render_json(made).encode()).hexdigest()
        finish = partial(self._access.jobs.finish, reason=made.partial or "", result=digest)
        _ = await run_sync(finish, job.id, lease, "done")

    async def _made(self, job: Job) -> Review:
        content = await run_sync(self._access.results.result, job, REVIEW)
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

        async def end_early() -> None:
            stop.asked = True
            if watcher.session is not None:
                _ = await watcher.session.abort()

        async with anyio.create_task_group() as group:
            group.start_soon(self._access.watch, job, end_early)
            made = await review(order, request, watcher=watcher, stop=stop)
            group.cancel_scope.cancel()
            return made
        raise AssertionError  # the group ends with its block

    async def _check_stop(self, job: Job, lease: SlotLease, made: Review) -> None:
        """Check that a review ended in a way that is posted."""
        why = made.partial or made.stopped or ""
        if made.stopped == "cancelled":
            _ = await self._access.job(job.id)
            message = f"the review of job {job.id} was stopped: {why}"
            raise FenceLost(message)
        if made.stopped == "outage":
            raise await self._access.outages.deferred(f"provider:{job.provider}", why)
        if made.stopped in {"failed", "refused"}:
            raise await self._access.end(job, lease, "failed", why)


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
