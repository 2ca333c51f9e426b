"""Jobs on their way into the engine: the row of a job is the request, and any worker hands it over."""

from collections.abc import Collection
from typing import Final

import msgspec
from sqlalchemy import select, update

from agent_core.kernel.values import threadsafe
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import ACTIVE_STATES, Job

JOB: Final = tables.JOB


class HandoverStore:
    """The queued jobs that the engine does not have yet. The methods block."""

    def __init__(self, database: FleetDatabase) -> None:
        """Read and write the tables of a database that is migrated."""
        self._database = database

    def waiting(self, *, limit: int = 200) -> tuple[Job, ...]:
        """Return the oldest jobs that the engine has not been handed in their present round."""
        query = select(JOB).where(JOB.c.engine_round < JOB.c.round).order_by(JOB.c.id).limit(limit)
        with self._database.begin() as connection:
            rows = connection.execute(query)
            return tuple(
                msgspec.convert(row, threadsafe(Job), from_attributes=True) for row in rows
            )

    def mark(self, jobs: Collection[Job]) -> None:
        """Store that the engine has these jobs."""
        with self._database.begin() as connection:
            for job in jobs:
                _ = connection.execute(
                    update(JOB)
                    .where(JOB.c.id == job.id, JOB.c.engine_round < job.round)
                    .values(engine_round=job.round)
                )

    def ended(self, jobs: Collection[int]) -> frozenset[int]:
        """Return those that no worker has any more: cancelled or superseded meanwhile."""
        query = select(JOB.c.id).where(JOB.c.id.in_(jobs), JOB.c.state.in_(ACTIVE_STATES))
        with self._database.begin() as connection:
            return frozenset(jobs) - frozenset(connection.execute(query).scalars())
