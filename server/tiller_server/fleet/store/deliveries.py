"""Webhook deliveries that were handled, so that a repeated one has no effect."""

from typing import Final

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase

DELIVERY: Final = tables.DELIVERY


class DeliveryStore:
    """The deliveries of a fleet. The methods block."""

    def __init__(self, database: FleetDatabase) -> None:
        """Read and write the tables of a database that is migrated."""
        self._database = database

    def is_handled(self, forge: str, delivery: str) -> bool:
        """Return whether a delivery was handled before."""
        query = select(DELIVERY.c.delivery).where(
            DELIVERY.c.forge == forge, DELIVERY.c.delivery == delivery
        )
        with self._database.begin() as connection:
            return connection.execute(query).first() is not None

    def add(self, forge: str, delivery: str, *, body_hash: str) -> None:
        """Store that a delivery was handled; another process may have done so at the same time."""
        row = {"forge": forge, "delivery": delivery, "body_hash": body_hash}
        try:
            with self._database.begin() as connection:
                _ = connection.execute(insert(DELIVERY).values(at_ms=self._database.now, **row))
        except IntegrityError:
            return
