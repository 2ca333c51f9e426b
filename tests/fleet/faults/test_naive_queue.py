"""The scenario of a worker taken for lost, against a queue without fences and against ours: the test can see."""

from collections.abc import Callable

from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, select, update

from tests.fleet.test_jobs import wanted
from tiller_server.fleet.errors import FenceLost
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.store.tables import SLOT
from tiller_server.fleet.values import SlotLease

NAIVE = Table(
    "naive_job",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("state", Text, nullable=False),
    Column("worker", Text, nullable=False, default=""),
)


class NaiveQueue:
    """A queue as they are often written: claimed by an update, ended by its id."""

    def __init__(self, database: FleetDatabase) -> None:
        self.database = database
        with database.begin() as connection:
            NAIVE.create(connection)
            _ = connection.execute(insert(NAIVE).values(id=1, state="queued"))

    def claim(self, worker: str) -> None:
        with self.database.begin() as connection:
            claimed = update(NAIVE).where(NAIVE.c.id == 1, NAIVE.c.state == "queued")
            _ = connection.execute(claimed.values(state="running", worker=worker))

    def queue_lost_again(self) -> None:
        with self.database.begin() as connection:
            _ = connection.execute(update(NAIVE).values(state="queued"))

    def finish(self) -> None:
        with self.database.begin() as connection:
            _ = connection.execute(update(NAIVE).where(NAIVE.c.id == 1).values(state="done"))

    def state(self) -> str:
        with self.database.begin() as connection:
            return connection.execute(select(NAIVE.c.state)).scalar_one()


def lost_worker_ended_the_job(finish: Callable[[], None], state: Callable[[], str]) -> bool:
    """Return whether a worker that was taken for lost can end the job that another one runs."""
    assert state() == "running"
    finish()
    return state() != "running"


def test_a_naive_queue_lets_a_lost_worker_end_the_job_of_another(database: FleetDatabase) -> None:
    queue = NaiveQueue(database)
    queue.claim("lost")
    queue.queue_lost_again()
    queue.claim("rightful")
    assert lost_worker_ended_the_job(queue.finish, queue.state)


def test_a_fenced_queue_does_not(database: FleetDatabase) -> None:
    jobs = JobStore(database)
    job = jobs.submit(wanted()).job
    SlotStore(database).make(1)
    lost = SlotStore(database).adopt(host="a", boot="1")
    _ = jobs.admit(job.id, lost)
    with database.begin() as connection:
        _ = connection.execute(update(SLOT).values(expires_ms=0))
    rightful = SlotStore(database).adopt(host="b", boot="1")
    _ = jobs.admit(job.id, rightful)

    def finish(lease: SlotLease = lost) -> None:
        try:
            _ = jobs.finish(job.id, lease, "done")
        except FenceLost:
            return

    assert not lost_worker_ended_the_job(finish, lambda: jobs.job(job.id).state)
    finish(rightful)
    assert jobs.job(job.id).state == "done"
