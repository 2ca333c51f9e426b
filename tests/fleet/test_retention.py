"""Old transcripts go, the job and its costs stay."""

from sqlalchemy import bindparam, func, insert, select

from tests.fleet.test_jobs import wanted
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.retention import DAY_MS, RemovedRows, remove_old_rows


def test_rows_of_jobs_that_ended_long_ago_are_removed(database: FleetDatabase) -> None:
    days = [0]
    later = FleetDatabase(
        str(database.engine.url.render_as_string(hide_password=False)),
        now=lambda _: bindparam("now_ms", callable_=lambda: days[0] * DAY_MS),
    )
    jobs = JobStore(later)
    old, young = (jobs.submit(wanted(number)).job for number in (1, 12))
    _ = jobs.cancel(old.id, reason="a test")
    days[0] = 8
    _ = jobs.cancel(young.id, reason="a test")
    with later.begin() as connection:
        for job in (old, young):
            entry = {"session": job.session, "seq": 1, "entry": b"{}"}
            _ = connection.execute(insert(tables.SESSION_ENTRY).values(**entry))
    assert remove_old_rows(later, days=7) == RemovedRows(jobs=1)
    assert remove_old_rows(later, days=7) == RemovedRows()
    with later.begin() as connection:
        left = connection.execute(select(tables.SESSION_ENTRY.c.session)).scalars().all()
        count = connection.execute(select(func.count()).select_from(tables.JOB)).scalar()
    assert (left, count) == ([young.session], 2)
    later.close()
