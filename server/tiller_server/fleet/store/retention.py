"""Removal of what nobody reads any more: transcripts and artefacts of old jobs, and noted deliveries."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Table, Text, delete, or_, select
from sqlalchemy.engine import Connection

from agent_core.kernel.values import Value
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase

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
    job = tables.JOB
    has_rows = or_(
        select(tables.ARTEFACT.c.job).where(tables.ARTEFACT.c.job == job.c.id).exists(),
        *(
            select(table.c.session).where(_of_job(table)).exists()
            for table in (tables.SESSION, tables.SESSION_ENTRY)
        ),
    )
    old = (
        select(job.c.id)
        .where(job.c.ended_ms < database.now - days * DAY_MS, has_rows)
        .order_by(job.c.id)
        .limit(BATCH)
    )
    with database.begin() as connection:
        ended = list(connection.execute(old).scalars())
        for number in ended:
            _remove(connection, number)
        return len(ended)


def _remove(connection: Connection, job: int) -> None:
    for table in (tables.SESSION, tables.SESSION_ENTRY):
        _ = connection.execute(delete(table).where(table.c.session.like(f"fleet-{job}-%")))
    _ = connection.execute(delete(tables.ARTEFACT).where(tables.ARTEFACT.c.job == job))


def _of_job(table: Table) -> ColumnElement[Any]:
    return table.c.session.like("fleet-" + tables.JOB.c.id.cast(Text) + "-%")
