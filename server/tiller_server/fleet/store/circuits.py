"""Circuits: a forge or provider that fails again and again is not asked for a while, so that jobs wait instead of failing."""

from typing import Any, Final

from sqlalchemy import insert, select, update

from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase

CIRCUIT: Final = tables.CIRCUIT
FAILURES: Final = 3
"""Failures in a row that open a circuit."""
FIRST_PAUSE_MS: Final = 30_000
LONGEST_PAUSE_MS: Final = 15 * 60 * 1000


class CircuitStore:
    """The circuits of a fleet, by `forge:NAME` and `provider:NAME`. The methods block."""

    def __init__(self, database: FleetDatabase) -> None:
        """Read and write the circuits of a database that is migrated."""
        self._database = database

    def failed(self, name: str, *, reason: str, wait_ms: int = 0) -> int:
        """Count a failure; returns the milliseconds for which the circuit is open, 0 while it is closed.

        Args:
            name: Circuit.
            reason: Shown with the jobs that wait.
            wait_ms: Time that the other side asked for: it opens the circuit at once.
        """
        with self._database.begin() as connection:
            self._database.serialize_admissions(connection)
            query = select(CIRCUIT.c.failures).where(CIRCUIT.c.name == name)
            there = connection.execute(query).scalar()
            failures = (there or 0) + 1
            doubled_ms = FIRST_PAUSE_MS * 2 ** min(max(failures - FAILURES, 0), 10)
            pause_ms = min(doubled_ms, LONGEST_PAUSE_MS) if failures >= FAILURES else 0
            pause_ms = max(pause_ms, wait_ms)
            values: dict[str, Any] = {"failures": failures, "reason": reason}
            if pause_ms:
                values["open_until_ms"] = self._database.now + pause_ms
            statement = (
                insert(CIRCUIT).values(name=name, **values)
                if there is None
                else update(CIRCUIT).where(CIRCUIT.c.name == name).values(**values)
            )
            _ = connection.execute(statement)
            return pause_ms

    def succeeded(self, name: str) -> None:
        """Close a circuit."""
        with self._database.begin() as connection:
            _ = connection.execute(
                update(CIRCUIT)
                .where(CIRCUIT.c.name == name, CIRCUIT.c.failures > 0)
                .values(failures=0, open_until_ms=0, reason="")
            )
