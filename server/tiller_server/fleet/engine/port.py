"""Port to the engine that brings jobs to workers, and resumes them after a worker was lost."""

from typing import Protocol

from tiller_server.fleet.values import Job, SlotLease


class StepRunner(Protocol):
    """The steps of a job after its admission. Each is idempotent, because it may be repeated after a fault.

    Each raises `JobEnded` when there is nothing more to do, `JobDeferred` when an outage elsewhere keeps the job, and
    `FenceLost` when this process must stop.
    """

    async def checkout(self, job: int, lease: SlotLease) -> None:
        """Check the commit out."""
        ...

    async def review(self, job: int, lease: SlotLease) -> None:
        """Run the session of the job, from its last entry on."""
        ...

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        """Store the posts that the result asks for."""
        ...

    async def deliver(self, job: int, lease: SlotLease) -> None:
        """Send the posts that are not confirmed."""
        ...

    async def close(self, job: int, lease: SlotLease) -> None:
        """End the job."""
        ...

    async def give_up(self, job: int, lease: SlotLease, reason: str) -> None:
        """End a job that is not begun any more as failed, and report the reason."""
        ...


class JobEngine(Protocol):
    """Brings jobs to workers until they have ended.

    The truth about the job is in our tables, not in the engine's: a stored job is on its way, and `submit` and `cancel`
    make it faster only.
    """

    def submit(self, job: Job) -> None:
        """Queue a job; repeating it does nothing while it is queued or running."""
        ...

    def cancel(self, job: Job) -> None:
        """End a job of this worker now. The others see it at their next write."""
        ...

    async def run(self, lease: SlotLease, *, sessions: int) -> None:
        """Run jobs, at most `sessions` at once, until `stop` is called; continues those the slot's former worker left."""
        ...

    async def stop(self, *, grace_s: float) -> None:
        """Stop taking jobs, and wait at most so long for those at work; the others are queued again."""
        ...

    async def watch(self, job: int) -> Job:
        """Wait until a job has ended, and return it."""
        ...
