"""Results of jobs: the artefact, its findings and its cost, written in one transaction."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import delete, insert, select
from sqlalchemy.engine import Connection

from agent_core.kernel.values import Value
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.fences import check_job
from tiller_server.fleet.values import Job, SlotLease

ARTEFACT: Final = tables.ARTEFACT
REVIEW: Final = "review"
CHANGE: Final = "change"
"""Kinds of results: of a review, and of a job that edits."""
PATCH: Final = "patch"


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
            _ = connection.execute(insert(ARTEFACT).values(**self._row(job, kind, content)))
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
                "at_ms": self._database.now,
            }
            _ = connection.execute(insert(tables.LEDGER).values(**spent))
        return digest

    def keep(self, job: Job, lease: SlotLease, kind: str, content: bytes) -> None:
        """Store an artefact of the present round of a job, in the place of an earlier one of its kind.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            check_job(connection, self._database, job.id, lease)
            _ = connection.execute(
                delete(ARTEFACT).where(
                    ARTEFACT.c.job == job.id,
                    ARTEFACT.c.round == job.round,
                    ARTEFACT.c.kind == kind,
                )
            )
            _ = connection.execute(insert(ARTEFACT).values(**self._row(job, kind, content)))

    def result(self, job: Job, kind: str) -> bytes | None:
        """Return the result of the present round of a job; None: it has none yet."""
        with self._database.begin() as connection:
            return _artefact(connection, job, kind)

    def _row(self, job: Job, kind: str, content: bytes) -> Mapping[str, Any]:
        return {
            "job": job.id,
            "round": job.round,
            "kind": kind,
            "sha256": sha256(content).hexdigest(),
            "size": len(content),
            "content": content,
            "at_ms": self._database.now,
        }


def _artefact(connection: Connection, job: Job, kind: str) -> bytes | None:
    query = select(ARTEFACT.c.content).where(
        ARTEFACT.c.job == job.id, ARTEFACT.c.round == job.round, ARTEFACT.c.kind == kind
    )
    return connection.execute(query).scalar()
