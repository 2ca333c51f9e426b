"""Removal of what nobody reads any more: transcripts and artefacts of old jobs, and noted deliveries."""

from typing import Final

from sqlalchemy import delete, select, update

from agent_core.kernel.values import Value
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import session_name

JOB: Final = tables.JOB
DAY_MS: Final = 24 * 60 * 60 * 1000
DELIVERY_DAYS: Final = 30
"""A forge repeats a delivery within days."""
BATCH: Final = 200
"""Jobs whose rows one transaction removes, so that workers wait for none for long."""


class RemovedRows(Value, frozen=True, kw_only=True):
    """Counts of what was removed."""

    jobs: int = 0
    """Jobs that lost their transcript and artefacts; the job and its costs stay."""
    deliveries: int = 0


def remove_old_rows(database: FleetDatabase, *, days: int) -> RemovedRows:
    """Remove transcripts and artefacts of jobs that ended more than `days` ago, and old deliveries. It blocks."""
    jobs = 0
    while removed := _remove_batch(database, days=days):
        jobs += removed
    with database.begin() as connection:
        old = tables.DELIVERY.c.at_ms < database.now - DELIVERY_DAYS * DAY_MS
        deliveries = connection.execute(delete(tables.DELIVERY).where(old)).rowcount
    return RemovedRows(jobs=jobs, deliveries=deliveries)


def _remove_batch(database: FleetDatabase, *, days: int) -> int:
    old = (
        select(JOB)
        .where(JOB.c.has_transcript, JOB.c.ended_ms < database.now - days * DAY_MS)
        .order_by(JOB.c.id)
        .limit(BATCH)
    )
    with database.begin() as connection:
        ended = connection.execute(old).all()
        numbers = [job.id for job in ended]
        names = [session_name(job.id, number) for job in ended for number in range(job.round + 1)]
        for table in (tables.SESSION_ENTRY, tables.SESSION):
            _ = connection.execute(delete(table).where(table.c.session.in_(names)))
        _ = connection.execute(delete(tables.ARTEFACT).where(tables.ARTEFACT.c.job.in_(numbers)))
        without = update(JOB).where(JOB.c.id.in_(numbers)).values(has_transcript=False)
        _ = connection.execute(without)
        return len(numbers)
