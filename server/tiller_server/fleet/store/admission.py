"""Limits of running jobs, circuits and budgets of the day, as the tables show them when a job is admitted.

A circuit opens when a forge or provider fails again and again: it is not asked for a while, and jobs wait instead of failing.
"""

from typing import Any, Final

from sqlalchemy import ColumnElement, and_, func, insert, select, update
from sqlalchemy.engine import Connection

from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.values import ACTIVE_STATES, Deferral, Job

DAY_MS: Final = 24 * 60 * 60 * 1000
BUSY_WAIT_MS: Final = 5_000
"""Pause before a job asks again that a limit of running jobs deferred."""
LONGEST_WAIT_MS: Final = 15 * 60 * 1000
JOB: Final = tables.JOB
CIRCUIT: Final = tables.CIRCUIT
FAILURES: Final = 3
"""Failures in a row that open a circuit."""
FIRST_PAUSE_MS: Final = 30_000
LONGEST_PAUSE_MS: Final = 15 * 60 * 1000


def deferral_of(
    connection: Connection, job: Job, limits: FleetLimits, *, now_ms: int
) -> Deferral | None:
    """Return the first limit, open circuit or spent budget that forbids a queued job to start now."""
    org = job.change.org
    most = (
        (
            "repository",
            job.repo,
            limits.per_repo,
            and_(JOB.c.forge == job.forge, JOB.c.repo == job.repo),
        ),
        ("organisation", org, limits.orgs.get(org, limits.per_org), JOB.c.org == org),
        ("forge", job.forge, limits.per_forge, JOB.c.forge == job.forge),
        (
            "provider",
            job.provider,
            limits.per_provider if job.provider else 0,
            JOB.c.provider == job.provider,
        ),
    )
    for scope, name, limit, condition in most:
        if limit and _running(connection, condition) >= limit:
            reason = f"the {scope} {name} has reached its limit of running jobs, {limit}"
            return Deferral(reason=reason, wait_ms=BUSY_WAIT_MS)
    circuits = select(CIRCUIT).where(
        CIRCUIT.c.name.in_([f"forge:{job.forge}", f"provider:{job.provider}"]),
        CIRCUIT.c.open_until_ms > now_ms,
    )
    for row in connection.execute(circuits):
        wait_ms = min(row.open_until_ms - now_ms, LONGEST_WAIT_MS)
        kind, _, name = row.name.partition(":")
        side = f"the {kind} {name}".rstrip()
        return Deferral(reason=f"{side} is not asked for now: {row.reason}", wait_ms=wait_ms)
    return _day_limit(connection, job, limits, now_ms=now_ms)


def _day_limit(
    connection: Connection, job: Job, limits: FleetLimits, *, now_ms: int
) -> Deferral | None:
    midnight_ms = now_ms - now_ms % DAY_MS
    budgets = (
        (
            "repository",
            job.repo,
            limits.usd_per_repo_day,
            tables.LEDGER.c.repo == job.repo,
        ),
        (
            "organisation",
            job.change.org,
            limits.usd_per_org_day,
            tables.LEDGER.c.org == job.change.org,
        ),
    )
    for scope, name, limit, condition in budgets:
        if not limit:
            continue
        query = select(func.coalesce(func.sum(tables.LEDGER.c.usd), 0.0)).where(
            condition, tables.LEDGER.c.at_ms >= midnight_ms
        )
        spent = float(connection.execute(query).scalar_one())
        if spent >= limit:
            reason = f"the {scope} {name} has spent {spent:.2f} of {limit:.2f} USD today"
            wait_ms = min(midnight_ms + DAY_MS - now_ms, LONGEST_WAIT_MS)
            return Deferral(reason=reason, wait_ms=wait_ms)
    return None


def _running(connection: Connection, condition: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(JOB).where(condition, JOB.c.state.in_(ACTIVE_STATES))
    return int(connection.execute(query).scalar_one())


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
