"""Jobs: submission, admission, and the writes of the worker that has one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, and_, func, insert, select, update
from sqlalchemy.engine import Connection

from agent_core.kernel.values import threadsafe
from tiller_server.fleet.errors import JobEnded, JobNotRepeatable, JobSpent, JobUnknown
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.admission import deferral_of
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.fences import check_job, check_lease
from tiller_server.fleet.values import (
    OPEN_STATES,
    ChangeName,
    ChangeState,
    Deferral,
    Job,
    JobRequest,
    JobState,
    SlotLease,
    Submission,
)

JOB: Final = tables.JOB


class JobStore:
    """The jobs of a fleet. The methods block."""

    def __init__(self, database: FleetDatabase, *, limits: FleetLimits | None = None) -> None:
        """Read and write the tables of a database that is migrated."""
        self._database = database
        self._limits = limits or FleetLimits()

    def submit(self, request: JobRequest) -> Submission:
        """Store a job once per key; jobs for other heads of the change that have not ended are superseded."""
        with self._database.begin() as connection:
            self._database.serialize_admissions(connection)
            there = _one(connection, JOB.c.key == request.key)
            if there is not None:
                return Submission(job=there, is_new=False)
            now_ms = self._now_ms(connection)
            change = request.change
            superseded = self._supersede(connection, request, now_ms=now_ms)
            _ = _put_change(connection, request, now_ms=now_ms)
            made = connection.execute(
                insert(JOB)
                .values(
                    key=request.key,
                    kind=request.kind,
                    forge=change.forge,
                    repo=change.repo,
                    org=change.org,
                    number=change.number,
                    head=request.head,
                    base=request.base,
                    state="queued",
                    cause=request.cause,
                    provider=request.provider,
                    prompt=request.prompt,
                    priority=request.priority,
                    budget_usd=request.budget_usd,
                    due_ms=now_ms + request.delay_ms,
                    deadline_ms=request.deadline_ms,
                    created_ms=now_ms,
                )
                .returning(JOB)
            ).one()
            return Submission(job=_job(made), is_new=True, superseded=superseded)

    def job(self, job: int) -> Job:
        """Return a job.

        Raises:
            JobUnknown: There is none of that id.
        """
        with self._database.begin() as connection:
            return _existing(connection, job)

    def by_key(self, key: str) -> Job | None:
        """Return the job of a key."""
        with self._database.begin() as connection:
            return _one(connection, JOB.c.key == key)

    def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        repo: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[Job, ...]:
        """Return jobs, newest first; `before` is the id of the last one on the page above."""
        query = select(JOB).order_by(JOB.c.id.desc()).limit(limit)
        if states:
            query = query.where(JOB.c.state.in_(states))
        if repo is not None:
            query = query.where(JOB.c.repo == repo)
        if before is not None:
            query = query.where(JOB.c.id < before)
        with self._database.begin() as connection:
            return tuple(_job(row) for row in connection.execute(query))

    def counts(self) -> Mapping[JobState, int]:
        """Return how many jobs are in each state."""
        query = select(JOB.c.state, func.count()).group_by(JOB.c.state)
        with self._database.begin() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def admit(self, job: int, lease: SlotLease) -> Job | Deferral:
        """Assign a job to a worker if no limit forbids it now. An attempt is counted when it is taken.

        A job that a lost worker had is taken over; its fence then refuses the other's writes.

        Raises:
            JobEnded: It is in a final state.
            JobSpent: Its deadline is over, or it was tried too often. It was assigned all the same, to be ended.
            FenceLost: The slot is no longer this process's.
            JobUnknown: There is none of that id.
        """
        spent: str | None = None
        with self._database.begin() as connection:
            self._database.serialize_admissions(connection)
            check_lease(connection, self._database, lease)
            now_ms = self._now_ms(connection)
            there = _existing(connection, job)
            if there.state not in OPEN_STATES:
                message = f"job {job} is {there.state}"
                raise JobEnded(message)
            if there.state == "queued":
                if there.deadline_ms is not None and now_ms > there.deadline_ms:
                    spent = "its deadline passed before a worker was free"
                elif there.due_ms > now_ms:
                    return Deferral(reason="it is not due yet", wait_ms=there.due_ms - now_ms)
                elif deferral := deferral_of(connection, there, self._limits, now_ms=now_ms):
                    return deferral
            if there.attempts >= self._limits.max_attempts:
                spent = f"it was begun {there.attempts} times and no worker survived it"
            taken = connection.execute(
                update(JOB)
                .where(JOB.c.id == job)
                .values(
                    state="posting" if there.state == "posting" else "running",
                    slot=lease.slot,
                    fence=lease.fence,
                    attempts=JOB.c.attempts + int(spent is None),
                    started_ms=func.coalesce(JOB.c.started_ms, now_ms),
                )
                .returning(JOB)
            ).one()
        if spent is not None:
            raise JobSpent(spent)
        return _job(taken)

    def advance(
        self, job: int, lease: SlotLease, state: JobState, *, head: str | None = None
    ) -> Job:
        """Set the state of a job that this worker has, when a step of it is done; with a head, also its commit.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            commit = {} if head is None else {"head": head}
            return self._write(connection, job, lease, state=state, **commit)

    def finish(
        self,
        job: int,
        lease: SlotLease,
        state: JobState,
        *,
        reason: str = "",
        result: str | None = None,
    ) -> Job:
        """End a job that this worker has.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            return self._write(
                connection,
                job,
                lease,
                state=state,
                reason=reason,
                result=result,
                ended_ms=self._now_ms(connection),
            )

    def put_back(self, job: int, lease: SlotLease, *, reason: str, wait_ms: int) -> Job:
        """Queue a job again that its worker cannot go on with, without an attempt: a drain, or an outage elsewhere.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            return self._write(
                connection,
                job,
                lease,
                state="queued",
                reason=reason,
                attempts=JOB.c.attempts - 1,
                due_ms=self._now_ms(connection) + wait_ms,
            )

    def fail_attempt(self, job: int, lease: SlotLease, *, reason: str, wait_ms: int) -> Job:
        """Queue a job again after a failure, or end it when that was its last attempt.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            now_ms = self._now_ms(connection)
            if _existing(connection, job).attempts >= self._limits.max_attempts:
                end: dict[str, Any] = {"state": "failed", "ended_ms": now_ms}
            else:
                end = {"state": "queued", "due_ms": now_ms + wait_ms}
            return self._write(connection, job, lease, reason=reason, **end)

    def cancel(self, job: int, *, reason: str, state: JobState = "cancelled") -> Job:
        """End a job from outside; one that has ended stays as it is. Its worker sees it at its next write."""
        with self._database.begin() as connection:
            there = _existing(connection, job)
            if there.state not in OPEN_STATES:
                return there
            now_ms = self._now_ms(connection)
            return _job(connection.execute(_ending(job, state, reason, now_ms=now_ms)).one())

    def retry(self, job: int) -> Job:
        """Queue a failed or cancelled job again, with all attempts, in a new session.

        Raises:
            JobNotRepeatable: It is neither.
            JobUnknown: There is none of that id.
        """
        with self._database.begin() as connection:
            there = _existing(connection, job)
            if there.state not in {"failed", "cancelled"}:
                message = (
                    f"job {job} is {there.state}; only a failed or cancelled job can be tried again"
                )
                raise JobNotRepeatable(message)
            again = connection.execute(
                update(JOB)
                .where(JOB.c.id == job)
                .values(
                    state="queued",
                    reason="",
                    attempts=0,
                    round=JOB.c.round + 1,
                    has_transcript=True,
                    due_ms=self._now_ms(connection),
                    deadline_ms=None,
                    started_ms=None,
                    ended_ms=None,
                )
                .returning(JOB)
            )
            return _job(again.one())

    def close_change(self, change: ChangeName, state: ChangeState) -> tuple[int, ...]:
        """Store that a change was closed or merged, and end its jobs."""
        with self._database.begin() as connection:
            now_ms = self._now_ms(connection)
            _ = connection.execute(
                update(tables.CHANGE)
                .where(_of_change(tables.CHANGE, change))
                .values(state=state, seen_ms=now_ms)
            )
            ended = connection.execute(
                update(JOB)
                .where(_of_change(JOB, change), JOB.c.state.in_(OPEN_STATES))
                .values(state="superseded", reason=f"the change was {state}", ended_ms=now_ms)
                .returning(JOB.c.id)
            )
            return tuple(ended.scalars())

    def _now_ms(self, connection: Connection) -> int:
        return int(connection.execute(select(self._database.now)).scalar_one())

    def _supersede(
        self, connection: Connection, request: JobRequest, *, now_ms: int
    ) -> tuple[int, ...]:
        if request.occurrence:
            earlier = JOB.c.cause == request.cause
            reason = f"the occurrence of {request.occurrence} followed"
        elif request.change.number:
            earlier = JOB.c.head != request.head
            reason = f"the change moved on to {request.head[:12]}"
        else:  # no change: each commit of the branch is a job of its own
            return ()
        ended = connection.execute(
            update(JOB)
            .where(
                _of_change(JOB, request.change),
                earlier,
                JOB.c.kind == request.kind,
                JOB.c.state.in_(OPEN_STATES),
            )
            .values(state="superseded", reason=reason, ended_ms=now_ms)
            .returning(JOB.c.id)
        )
        return tuple(ended.scalars())

    def _write(self, connection: Connection, job: int, lease: SlotLease, **values: Any) -> Job:
        check_job(connection, self._database, job, lease)
        query = update(JOB).where(JOB.c.id == job).values(**values).returning(JOB)
        return _job(connection.execute(query).one())


def _put_change(connection: Connection, request: JobRequest, *, now_ms: int) -> None:
    change = request.change
    values = {"head": request.head, "base": request.base, "state": "open", "seen_ms": now_ms}
    written = connection.execute(
        update(tables.CHANGE).where(_of_change(tables.CHANGE, change)).values(**values)
    )
    if not written.rowcount:
        _ = connection.execute(
            insert(tables.CHANGE).values(
                forge=change.forge, repo=change.repo, number=change.number, **values
            )
        )


def _of_change(table: Any, change: ChangeName) -> ColumnElement[bool]:
    return and_(
        table.c.forge == change.forge, table.c.repo == change.repo, table.c.number == change.number
    )


def _ending(job: int, state: JobState, reason: str, *, now_ms: int) -> Any:
    return (
        update(JOB)
        .where(JOB.c.id == job)
        .values(state=state, reason=reason, ended_ms=now_ms)
        .returning(JOB)
    )


def _one(connection: Connection, condition: ColumnElement[bool]) -> Job | None:
    row = connection.execute(select(JOB).where(condition)).first()
    return None if row is None else _job(row)


def _existing(connection: Connection, job: int) -> Job:
    there = _one(connection, JOB.c.id == job)
    if there is None:
        message = f"there is no job {job}"
        raise JobUnknown(message)
    return there


def _job(row: Row[Any]) -> Job:
    return msgspec.convert(row, threadsafe(Job), from_attributes=True)
