"""Slots: which process works in which place. A lost one is noticed by its lease, and its fence then refuses its writes."""

import os
from typing import Any, Final

import msgspec
from sqlalchemy import Row, insert, select, update

from agent_core.kernel.values import threadsafe
from tiller_server.fleet.errors import FenceLost, SlotMissing
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import SlotLease, WorkerSlot

SLOT: Final = tables.SLOT


class SlotStore:
    """The slots of a fleet. The methods block."""

    def __init__(self, database: FleetDatabase, *, lease_ms: int = 45_000) -> None:
        """Read and write the slots of a database that is migrated; a lease ends `lease_ms` after its last renewal."""
        self._database = database
        self.lease_ms: Final = lease_ms

    def make(self, count: int) -> None:
        """Make slots 1 to `count`, as far as they are not there; none is removed."""
        with self._database.begin() as connection:
            self._database.serialize_admissions(connection)
            there = set(connection.execute(select(SLOT.c.id)).scalars())
            for number in range(1, count + 1):
                if number not in there:
                    _ = connection.execute(insert(SLOT).values(id=number))

    def adopt(self, *, host: str, boot: str) -> SlotLease:
        """Adopt the first slot whose lease is over, and raise its fence.

        Raises:
            SlotMissing: Each has a living worker.
        """
        with self._database.begin() as connection:
            free = (
                select(SLOT.c.id)
                .where(SLOT.c.expires_ms < self._database.now)
                .order_by(SLOT.c.id)
                .limit(1)
            )
            if not self._database.is_sqlite:
                free = free.with_for_update(skip_locked=True)
            number = connection.execute(free).scalar()
            if number is None:
                message = "each slot of the fleet has a living worker"
                raise SlotMissing(message)
            fence = connection.execute(
                update(SLOT)
                .where(SLOT.c.id == number)
                .values(
                    host=host,
                    boot=boot,
                    pid=os.getpid(),
                    fence=SLOT.c.fence + 1,
                    expires_ms=self._database.now + self.lease_ms,
                    is_drained=False,
                )
                .returning(SLOT.c.fence)
            ).scalar_one()
            return SlotLease(slot=number, fence=fence)

    def renew(self, lease: SlotLease) -> WorkerSlot:
        """Extend a lease that is not over.

        Raises:
            FenceLost: It is over, or another process has the slot.
        """
        with self._database.begin() as connection:
            row = connection.execute(
                update(SLOT)
                .where(
                    SLOT.c.id == lease.slot,
                    SLOT.c.fence == lease.fence,
                    SLOT.c.expires_ms >= self._database.now,
                )
                .values(expires_ms=self._database.now + self.lease_ms)
                .returning(SLOT)
            ).first()
        if row is None:
            message = f"the lease of slot {lease.slot} is over (fence {lease.fence})"
            raise FenceLost(message)
        return _slot(row)

    def release(self, lease: SlotLease) -> None:
        """End a lease at once, so that the next worker takes the slot; without effect on another's."""
        with self._database.begin() as connection:
            _ = connection.execute(
                update(SLOT)
                .where(SLOT.c.id == lease.slot, SLOT.c.fence == lease.fence)
                .values(expires_ms=self._database.now - 1)
            )

    def drain(self, slot: int | None, *, is_drained: bool = True) -> int:
        """Mark one slot, or all, so that the worker takes no more jobs and ends; returns the count of slots."""
        query = update(SLOT).values(is_drained=is_drained)
        if slot is not None:
            query = query.where(SLOT.c.id == slot)
        with self._database.begin() as connection:
            return connection.execute(query).rowcount

    def slots(self) -> tuple[WorkerSlot, ...]:
        """Return all slots in their order."""
        with self._database.begin() as connection:
            return tuple(_slot(row) for row in connection.execute(select(SLOT).order_by(SLOT.c.id)))


def _slot(row: Row[Any]) -> WorkerSlot:
    return msgspec.convert(row, threadsafe(WorkerSlot), from_attributes=True)
