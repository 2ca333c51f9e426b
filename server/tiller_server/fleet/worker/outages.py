"""Outages of forges and providers: counted on their circuits, so that the jobs that need them wait."""

from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from tiller_server.fleet.errors import JobDeferred
from tiller_server.fleet.store.admission import CircuitStore
from tiller_server.fleet.store.database import FleetDatabase

OUTAGE_WAIT_MS: Final = 60_000


class Outages:
    """Counts the failures and successes of `forge:NAME` and `provider:NAME`."""

    def __init__(self, database: FleetDatabase) -> None:
        """Write to the tables of a database that is migrated."""
        self._circuits = CircuitStore(database)

    async def deferred(self, circuit: str, reason: str, *, limit_ms: int = 0) -> JobDeferred:
        """Count a failure; returns the error that lets the job wait.

        Args:
            circuit: Name of the circuit.
            reason: Shown with the jobs that wait.
            limit_ms: Time that the other side asked for; 0: it failed.
        """
        failed = partial(self._circuits.failed, circuit, reason=reason, wait_ms=limit_ms)
        return JobDeferred(reason, wait_ms=await run_sync(failed) or OUTAGE_WAIT_MS)

    async def ended(self, circuit: str) -> None:
        """Count a success."""
        await run_sync(self._circuits.succeeded, circuit)
