"""The order in which jobs run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    name: str
    priority: int = 0


def order(jobs):
    """Return the names of jobs in the order in which they run."""
    return [job.name for job in sorted(jobs, key=lambda job: (-job.priority, job.name))]
