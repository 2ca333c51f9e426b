"""Port to the engine that brings jobs to workers, and resumes them after a worker was lost."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tiller_server.fleet.values import Job, SlotLease

Step = Callable[[int, SlotLease], Awaitable[None]]
"""One step of a job: idempotent, because it may be repeated after a fault. Raises `JobEnded` when there is nothing to do."""


class JobEngine(Protocol):
    """Brings jobs to workers until they have ended. The truth about the job is in our tables, not in the engine's."""

    def submit(self, job: Job) -> None:
        """Queue a job; repeating it does nothing while it is queued or running."""
        ...

    def cancel(self, job: Job) -> None:
        """Remove a queued job, and end a running one at its next step."""
        ...

    async def run(self, lease: SlotLease, *, sessions: int) -> None:
        """Run jobs, at most `sessions` at once, until `stop` is called; continues those the slot's former worker left."""
        ...

    async def stop(self, *, grace_s: float) -> None:
        """Stop taking jobs, and wait at most so long for those at work."""
        ...

    async def watch(self, job: int) -> Job:
        """Wait until a job has ended, and return it."""
        ...
