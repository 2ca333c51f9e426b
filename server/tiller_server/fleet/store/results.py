"""Results of jobs: the artefact, its findings and its cost, written in one transaction."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection

from agent_core.kernel.values import Value
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.fences import check_job
from tiller_server.fleet.values import Job, SlotLease

ARTEFACT: Final = tables.ARTEFACT


class FindingRow(Value, frozen=True, kw_only=True):
    """A finding as the tables have it."""

    fingerprint: str
    path: str
    line: int
    severity: str
    text_hash: str
    state: str = "new"


class JobCost(Value, frozen=True, kw_only=True):
    """Model calls of a job."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


class ResultStore:
    """The results of jobs. The methods block."""

    def __init__(self, database: FleetDatabase) -> None:
        """Read and write the tables of a database that is migrated."""
        self._database = database

    def save(
        self,
        job: Job,
        lease: SlotLease,
        kind: str,
        content: bytes,
        *,
        findings: Sequence[FindingRow] = (),
        cost: JobCost,
    ) -> str:
        """Store the result of a round of a job once; returns its hash.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        digest = sha256(content).hexdigest()
        with self._database.begin() as connection:
            check_job(connection, self._database, job.id, lease)
            if (there := _artefact(connection, job, kind)) is not None:
                return sha256(there).hexdigest()
            now = self._database.now
            artefact = {
                "job": job.id,
                "round": job.round,
                "kind": kind,
                "sha256": digest,
                "size": len(content),
                "content": content,
                "at_ms": now,
            }
            _ = connection.execute(insert(ARTEFACT).values(**artefact))
            _ = connection.execute(tables.FINDING.delete().where(tables.FINDING.c.job == job.id))
            for row in findings:
                values = {
                    "job": job.id,
                    **{name: getattr(row, name) for name in row.__struct_fields__},
                }
                _ = connection.execute(insert(tables.FINDING).values(**values))
            spent = {
                "job": job.id,
                "repo": job.repo,
                "org": job.change.org,
                "provider": job.provider,
                "calls": cost.calls,
                "tokens": cost.tokens,
                "usd": cost.usd,
                "at_ms": now,
            }
            _ = connection.execute(insert(tables.LEDGER).values(**spent))
        return digest

    def result(self, job: Job, kind: str) -> bytes | None:
        """Return the result of the present round of a job; None: it has none yet."""
        with self._database.begin() as connection:
            return _artefact(connection, job, kind)


def _artefact(connection: Connection, job: Job, kind: str) -> bytes | None:
    query = select(ARTEFACT.c.content).where(
        ARTEFACT.c.job == job.id, ARTEFACT.c.round == job.round, ARTEFACT.c.kind == kind
    )
    return connection.execute(query).scalar()
