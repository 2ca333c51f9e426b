"""The steps of a job. Each may be repeated after a kill: the tables, the session and the forge show the work that is done."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from anyio.to_thread import run_sync

from agent_core.assembly import SessionRequest
from agent_core.events import Budgets
from agent_core.storage import SessionStore
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.forges import Forge, forge_of
from tiller_server.fleet.limits import MAX_ATTEMPTS
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import Job, SlotLease
from tiller_server.fleet.worker.change_commits import ChangeCommits
from tiller_server.fleet.worker.change_steps import ChangeSteps
from tiller_server.fleet.worker.checkouts import Checkouts, RepositoryMissing
from tiller_server.fleet.worker.job_access import JobAccess
from tiller_server.fleet.worker.review_steps import ReviewSteps
from tiller_server.fleet.worker.worker import WorkerParts
from tiller_server.review.options import ReviewOrder


class KindSteps(Protocol):
    """The steps that differ by the kind of a job."""

    async def has_result(self, job: Job) -> bool:
        """Return whether the session of the job has ended and its result is stored."""
        ...

    async def run(self, job: Job, lease: SlotLease) -> None:
        """Run the session of the job from its last entry on, and store its result."""
        ...

    async def prepare_posts(self, job: Job, lease: SlotLease) -> None:
        """Store the posts that the result asks for."""
        ...

    async def deliver(self, job: Job, lease: SlotLease) -> None:
        """Bring the result to the forge."""
        ...

    async def close(self, job: Job, lease: SlotLease) -> None:
        """End the job."""
        ...


def make_steps(parts: WorkerParts) -> "JobSteps":
    """Return the steps of the jobs of a worker."""
    config = parts.config
    folder = Path(config.folder)
    secrets = {
        name
        for forge in config.forges.values()
        for name in (forge.token_env, forge.webhook_secret_env)
    }
    # No session sees the secrets of the forges: its commands are contained, and their output is the model's.
    env = {name: value for name, value in parts.env.items() if name not in secrets}
    return JobSteps(
        parts.database,
        forges={
            name: forge_of(name, settings, parts.env) for name, settings in config.forges.items()
        },
        folder=folder,
        sessions=lambda _: parts.sessions,
        is_fresh=parts.keeper.is_fresh,
        request=SessionRequest(workspace=folder, env=env, model=config.model, clock=parts.clock),
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
            order: Limits of reviews and of other jobs; base, head and budget are those of the job.
            max_attempts: Attempts of a job; the failure of the last one is written on the check of its commit.
        """
        checkouts = Checkouts(folder, env=request.env)
        self._access = JobAccess(
            database,
            forges=forges,
            checkouts=checkouts,
            is_fresh=is_fresh,
            clock=request.clock,
            max_attempts=max_attempts,
        )
        order = order or ReviewOrder()
        self._reviews: Final = ReviewSteps(self._access, sessions, request, order)
        self._changes: Final = ChangeSteps(
            self._access, ChangeCommits(checkouts), sessions, request, order.budgets
        )

    async def checkout(self, job: int, lease: SlotLease) -> None:
        """Check the commit out; a job without one is for the tip of its branch, which it keeps from then on."""
        there = await self._access.job(job)
        if await self._of(there).has_result(there):
            return
        if not there.head:
            there = await self._at_tip(there, lease)
        _ = await self._access.check_out(there, lease)

    async def review(self, job: int, lease: SlotLease) -> None:
        """Run the session of the job from its last entry on, and store its result."""
        there = await self._access.job(job)
        if not await self._of(there).has_result(there):
            await self._of(there).run(there, lease)

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        """Store the posts that the result asks for, in one transaction."""
        there = await self._access.job(job)
        await self._of(there).prepare_posts(there, lease)
        _ = await run_sync(self._access.jobs.advance, job, lease, "posting")
        pass_point("post.intended")

    async def deliver(self, job: int, lease: SlotLease) -> None:
        """Send the posts that are not on the forge, and confirm those that are."""
        there = await self._access.job(job)
        await self._of(there).deliver(there, lease)

    async def close(self, job: int, lease: SlotLease) -> None:
        """Remove the checkout, and end the job."""
        there = await self._access.job(job)
        await self._access.checkouts.remove(there)
        await self._of(there).close(there, lease)

    async def give_up(self, job: int, lease: SlotLease, reason: str) -> None:
        """End a job that is not begun any more, and write the reason on the check of its commit."""
        there = await self._access.job(job)
        _ = await self._access.end(there, lease, "failed", reason)

    def _of(self, job: Job) -> KindSteps:
        return self._reviews if job.kind == "review" else self._changes

    async def _at_tip(self, job: Job, lease: SlotLease) -> Job:
        """Store the tip of the branch as the commit of the job, so that each worker continues on the same."""
        forge = await self._access.forge(job, lease)
        try:
            tip = await self._access.checkouts.tip(job, forge, job.base)
        except RepositoryMissing as error:
            raise await self._access.end(job, lease, "failed", str(error)) from error
        if not tip:
            reason = f"the repository has no branch {job.base!r}"
            raise await self._access.end(job, lease, "failed", reason)
        advanced = self._access.jobs.advance
        return await run_sync(lambda: advanced(job.id, lease, "running", head=tip))
