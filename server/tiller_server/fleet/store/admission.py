"""Limits of running jobs, circuits and budgets of the day, as the tables show them when a job is admitted."""

from typing import Final

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.engine import Connection

from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store import tables
from tiller_server.fleet.values import ACTIVE_STATES, Deferral, Job

DAY_MS: Final = 24 * 60 * 60 * 1000
BUSY_WAIT_MS: Final = 5_000
"""Pause before a job asks again that a limit of running jobs deferred."""
LONGEST_WAIT_MS: Final = 15 * 60 * 1000
JOB: Final = tables.JOB


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
            reason = f"{limit} jobs of the {scope} {name} are running"
            return Deferral(reason=reason, wait_ms=BUSY_WAIT_MS)
    circuits = select(tables.CIRCUIT).where(
        tables.CIRCUIT.c.name.in_([f"forge:{job.forge}", f"provider:{job.provider}"]),
        tables.CIRCUIT.c.open_until_ms > now_ms,
    )
    for row in connection.execute(circuits):
        wait_ms = min(row.open_until_ms - now_ms, LONGEST_WAIT_MS)
        return Deferral(reason=f"{row.name} is not asked for now: {row.reason}", wait_ms=wait_ms)
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
