"""Checks that a worker may still write, in the transaction of the write."""

from sqlalchemy import select
from sqlalchemy.engine import Connection

from tiller_server.fleet.errors import FenceLost, JobEnded, JobUnknown
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import ACTIVE_STATES, SlotLease


def check_lease(connection: Connection, database: FleetDatabase, lease: SlotLease) -> None:
    """Check that a slot is still this process's.

    Raises:
        FenceLost: It is not.
    """
    slot = tables.SLOT
    query = select(slot.c.id).where(
        slot.c.id == lease.slot, slot.c.fence == lease.fence, slot.c.expires_ms > database.now
    )
    if connection.execute(query).first() is None:
        message = f"slot {lease.slot} is no longer this process's (fence {lease.fence})"
        raise FenceLost(message)


def check_job(connection: Connection, database: FleetDatabase, job: int, lease: SlotLease) -> None:
    """Check that a job is this worker's and at work, and keep it so until the transaction ends.

    Raises:
        FenceLost: The slot or the job is no longer this worker's.
        JobEnded: It was cancelled or superseded meanwhile.
    """
    check_lease(connection, database, lease)
    query = select(tables.JOB).where(tables.JOB.c.id == job).with_for_update()
    there = connection.execute(query).first()
    if there is None:
        message = f"there is no job {job}"
        raise JobUnknown(message)
    if there.state not in ACTIVE_STATES:
        message = f"job {job} is {there.state}: {there.reason}"
        raise JobEnded(message)
    if (there.slot, there.fence) != (lease.slot, lease.fence):
        message = f"job {job} is slot {there.slot}'s now"
        raise FenceLost(message)
