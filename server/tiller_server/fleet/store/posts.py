"""Outbox of posts: intended, sent, then confirmed by looking at the forge, or dropped. Every write names the lease."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import ColumnElement, and_, insert, select, update
from sqlalchemy.engine import Connection

from agent_core.kernel.values import Value, threadsafe
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.fences import check_job
from tiller_server.fleet.values import ChangeName, Job, SlotLease

PostTarget = Literal["inline", "summary", "check", "branch", "pull"]
PostState = Literal["intended", "sent", "confirmed", "dropped"]
POST: Final = tables.POST


class PostKey(Value, frozen=True, kw_only=True):
    """Name of a post within a change: there is one of it on the forge at most."""

    target: PostTarget
    fingerprint: str
    """Of the finding; the commit of a check; the name of a branch, or of that of a pull request; empty for the summary."""


class Post(Value, frozen=True, kw_only=True):
    """A post as it is stored."""

    job: int
    target: PostTarget
    fingerprint: str
    state: PostState
    reason: str
    expected_head: str
    sent_hash: str
    """Of the text sent last; of a branch its commit."""
    confirmed_hash: str
    """Of the text seen on the forge last, of a branch its commit; empty: none was."""
    forge_id: str | None

    @property
    def key(self) -> PostKey:
        """Its name within the change."""
        return PostKey(target=self.target, fingerprint=self.fingerprint)


class PostStore:
    """The posts of a fleet. The methods block."""

    def __init__(self, database: FleetDatabase) -> None:
        """Read and write the tables of a database that is migrated."""
        self._database = database

    def prepare(self, job: Job, lease: SlotLease, keys: Iterable[PostKey]) -> None:
        """Store the posts of a job as intended, in one transaction; comments that are confirmed stay so.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            check_job(connection, self._database, job.id, lease)
            there = _posts(connection, job.change)
            keys = tuple(keys)
            # A branch is one job's, whatever other branches of the change are intended.
            targets = {key.target for key in keys} - {"branch", "pull"}
            _ = connection.execute(
                update(POST)
                .where(_of_change(job.change), POST.c.job != job.id, POST.c.state == "intended")
                .where(POST.c.target.in_(targets))
                .values(state="dropped", reason=f"job {job.id} followed", at_ms=self._database.now)
            )
            for key in keys:
                before = there.get(key)
                if before is None:
                    _ = connection.execute(insert(POST).values(**self._new(job, key)))
                elif before.job != job.id and not (
                    key.target == "inline" and before.state == "confirmed"
                ):
                    self._set(
                        connection,
                        job.change,
                        key,
                        job=job.id,
                        state="intended",
                        reason="",
                        expected_head=job.head,
                    )

    def drop_intended(self, job: Job, lease: SlotLease, *, reason: str) -> None:
        """Drop the posts of a job that ends early, as far as none was sent.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            check_job(connection, self._database, job.id, lease)
            _ = connection.execute(
                update(POST)
                .where(POST.c.job == job.id, POST.c.state == "intended")
                .values(state="dropped", reason=reason, at_ms=self._database.now)
            )

    def of_change(self, change: ChangeName) -> Mapping[PostKey, Post]:
        """Return all posts of a change."""
        with self._database.begin() as connection:
            return _posts(connection, change)

    def write(
        self,
        job: Job,
        lease: SlotLease,
        state: PostState,
        values: Mapping[PostKey, Mapping[str, str | None]],
    ) -> None:
        """Set the state of posts, and other columns of each, in one transaction.

        Raises:
            FenceLost: The slot or the job is no longer this worker's.
            JobEnded: It was cancelled or superseded meanwhile.
        """
        with self._database.begin() as connection:
            check_job(connection, self._database, job.id, lease)
            for key, columns in values.items():
                self._set(connection, job.change, key, state=state, **columns)

    def _set(
        self, connection: Connection, change: ChangeName, key: PostKey, **values: object
    ) -> None:
        query = update(POST).where(_of_change(change), _of_key(key))
        _ = connection.execute(query.values(at_ms=self._database.now, **values))

    def _new(self, job: Job, key: PostKey) -> Mapping[str, Any]:
        return {
            "job": job.id,
            "forge": job.forge,
            "repo": job.repo,
            "number": job.number,
            "target": key.target,
            "fingerprint": key.fingerprint,
            "state": "intended",
            "expected_head": job.head,
            "at_ms": self._database.now,
        }


def _posts(connection: Connection, change: ChangeName) -> Mapping[PostKey, Post]:
    rows = connection.execute(select(POST).where(_of_change(change)).order_by(POST.c.id))
    posts = (msgspec.convert(row, threadsafe(Post), from_attributes=True) for row in rows)
    return {post.key: post for post in posts}


def _of_change(change: ChangeName) -> ColumnElement[bool]:
    return and_(
        POST.c.forge == change.forge, POST.c.repo == change.repo, POST.c.number == change.number
    )


def _of_key(key: PostKey) -> ColumnElement[bool]:
    return and_(POST.c.target == key.target, POST.c.fingerprint == key.fingerprint)
