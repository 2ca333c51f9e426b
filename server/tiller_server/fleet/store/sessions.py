"""Sessions in the tables of the fleet: each append names the number of its first entry, and the slot of its writer."""

import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import msgspec
from anyio.to_thread import run_sync
from sqlalchemy import ColumnElement, Row, and_, delete, exists, insert, or_, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from agent_core.kernel import JsonObject, SessionId, json
from agent_core.kernel.errors import (
    SessionClosed,
    SessionDamaged,
    SessionLocked,
    SessionNotFound,
    StorageUnavailable,
)
from agent_core.kernel.values import threadsafe
from agent_core.storage.port import (
    OpenedSession,
    Recovery,
    SessionSummary,
    StoredSession,
    begins_session,
)
from agent_core.storage.summary import SessionSummaryBuilder
from agent_core.transcript.codec import (
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    entry_to_json,
)
from agent_core.transcript.entries import AnyEntry, ColdEntry, Header, WholeEntry
from tiller_server.fleet.errors import FenceLost
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase, reason_of
from tiller_server.fleet.values import SlotLease

_Done = TypeVar("_Done")
SESSION: Final = tables.SESSION
ENTRY: Final = tables.SESSION_ENTRY
SLOT: Final = tables.SLOT
NOBODY: Final = SlotLease(slot=0, fence=0)
"""Writer of a session that is not open."""
COMPRESSION: Final = 6


class FleetSessionLog:
    """One session, open for writing by the process that has a slot."""

    def __init__(
        self,
        database: FleetDatabase,
        lease: SlotLease,
        header: Header,
        *,
        kind: str,
        opened: set[SessionId],
        seq: int = 0,
        summary: SessionSummary | None = None,
    ) -> None:
        """Continue after entry `seq`; 0: there is none.

        Args:
            database: It is migrated.
            lease: Slot of this process.
            header: The session's.
            kind: `session` or `task`.
            opened: The sessions that this process writes; the log removes its own when it is closed.
            seq: Number of the last entry.
            summary: Summary of the entries until then.
        """
        self._database = database
        self._lease = lease
        self._header = header
        self._kind = kind
        self._opened = opened
        self._seq = seq
        self._summary = summary
        self._held: list[AnyEntry] = []
        self._lock = anyio.Lock()
        self._is_closed = False

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._header

    @property
    def location(self) -> Path | None:
        """None: there is no file."""
        return None

    @property
    def attachments(self) -> None:
        """None: the entries hold them."""
        return

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Write entries in one transaction, with the numbers after the last one.

        Raises:
            FenceLost: Another process has the slot or the session: nothing was written, and this one ends.
            StorageUnavailable: The database cannot be used; nothing was written.
        """
        async with self._lock:
            if self._is_closed:
                message = f"the session {self._header.id!r} was closed: open it again to write"
                raise SessionClosed(message)
            batch = [*self._held, *entries]
            if not self._seq and not begins_session(batch):
                self._held = batch
                return
            await self._write(batch)
            self._held = []

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Return them as they are: a job ends soon, and its bodies stay in memory."""
        return tuple(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        """Return nothing for nothing: no entry of ours is without its body.

        Raises:
            StorageUnavailable: The entries are another log's.
        """
        if entries:
            message = (
                f"the session {self._header.id!r} has no entry {entries[0].id!r} without its body"
            )
            raise StorageUnavailable(message)
        return ()

    async def sync(self) -> None:
        """Do nothing: an append is committed when it returns."""

    async def close(self) -> None:
        """Close the log, so that another process may open the session."""
        if self._is_closed:
            return
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            try:
                await run_sync(self._release)
            except SQLAlchemyError:
                pass  # the slot's lease ends, and with it what it has open
            finally:
                self._opened.discard(self._header.id)

    async def _write(self, batch: Sequence[AnyEntry]) -> None:
        whole = [entry for entry in batch if not isinstance(entry, ColdEntry)]
        builder = SessionSummaryBuilder(self._header, previous=self._summary)
        rows: list[bytes] = []
        for entry in whole:
            builder.take(entry_to_json(entry))
            rows.append(zlib.compress(encode_entry(entry), COMPRESSION))
        summary = builder.summary(None)
        pass_point("append.before")
        await in_database(lambda: self._insert(rows, summary))
        pass_point("append.after")
        self._seq += len(rows)
        self._summary = summary

    def _insert(self, rows: Sequence[bytes], summary: SessionSummary) -> None:
        header, lease, last = self._header, self._lease, self._seq + len(rows)
        state = {"seq": last, "summary": json.encode(msgspec.to_builtins(summary))}
        values = {**state, "modified_ms": summary.modified_ms}
        mine = and_(SLOT.c.id == lease.slot, SLOT.c.fence == lease.fence)
        is_alive = exists().where(mine, SLOT.c.expires_ms > self._database.now)
        try:
            with self._database.begin() as connection:
                if self._seq:
                    is_next = and_(_of_lease(header.id, lease), SESSION.c.seq == self._seq)
                    query = update(SESSION).where(is_next, is_alive).values(**values)
                    if not connection.execute(query).rowcount:
                        raise FenceLost(self._refusal())
                else:
                    if connection.execute(select(SLOT.c.id).where(mine, is_alive)).first() is None:
                        raise FenceLost(self._refusal())
                    _ = connection.execute(
                        insert(SESSION).values(
                            session=header.id,
                            kind=self._kind,
                            cwd=header.cwd,
                            header=encode_header(header),
                            slot=lease.slot,
                            fence=lease.fence,
                            created_ms=header.at_ms,
                            **values,
                        )
                    )
                _ = connection.execute(
                    insert(ENTRY),
                    [
                        {
                            "session": header.id,
                            "seq": self._seq + number,
                            "slot": lease.slot,
                            "fence": lease.fence,
                            "entry": row,
                        }
                        for number, row in enumerate(rows, start=1)
                    ],
                )
        except IntegrityError as error:
            raise FenceLost(self._refusal()) from error

    def _refusal(self) -> str:
        return (
            f"entry {self._seq + 1} of the session {self._header.id!r} was not written: slot {self._lease.slot} "
            f"(fence {self._lease.fence}) is no longer its writer"
        )

    def _release(self) -> None:
        with self._database.begin() as connection:
            _ = connection.execute(
                update(SESSION)
                .where(_of_lease(self._header.id, self._lease))
                .values(slot=NOBODY.slot, fence=NOBODY.fence)
            )


class FleetSessions:
    """The sessions of a fleet's jobs. A process without a slot reads them only."""

    def __init__(
        self, database: FleetDatabase, lease: SlotLease | None = None, *, kind: str = "session"
    ) -> None:
        """Read and write the tables of a database that is migrated.

        Args:
            database: It is migrated.
            lease: Slot of this process; None: it writes nothing.
            kind: `session`, or `task` for those that no list names.
        """
        self._database = database
        self._lease = lease
        self._kind = kind
        self._opened: set[SessionId] = set()
        self._tasks: FleetSessions | None = None

    @property
    def tasks(self) -> "FleetSessions":
        """Where the sessions of tasks are kept."""
        self._tasks = self._tasks or FleetSessions(self._database, self._lease, kind="task")
        return self._tasks

    async def create(self, header: Header) -> FleetSessionLog:
        """Begin a session.

        Raises:
            SessionLocked: This process writes one of that id.
            StorageUnavailable: This process has no slot.
        """
        lease = self._writer()
        if header.id in self._opened:
            raise _locked(header.id)
        self._opened.add(header.id)
        return FleetSessionLog(self._database, lease, header, kind=self._kind, opened=self._opened)

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing; that of a process whose slot was adopted is taken over.

        Raises:
            SessionNotFound: No such session.
            SessionLocked: A living process writes it.
            SessionDamaged: Its header cannot be read.
            FenceLost: The slot is no longer this process's.
            StorageUnavailable: The database cannot be used, or this process has no slot.
        """
        lease = self._writer()
        if session in self._opened:
            _ = await self.read(session)  # not found until something was said
            raise _locked(session)
        with ExitStack() as undo:
            self._opened.add(session)
            _ = undo.callback(self._opened.discard, session)
            row, entries = await in_database(lambda: self._take(session, lease))
            log = FleetSessionLog(
                self._database,
                lease,
                _header(row),
                kind=self._kind,
                opened=self._opened,
                seq=row.seq,
                summary=_summary(row),
            )
            _ = undo.pop_all()
        return OpenedSession(log=log, entries=entries, recovery=Recovery())

    async def read(self, session: SessionId) -> StoredSession:
        """Read a session whoever writes it meanwhile."""

        def read() -> tuple[Row[Any], tuple[WholeEntry, ...]]:
            with self._database.begin() as connection:
                row = self._row(connection, session)
                return row, _entries(connection, session, row.seq)

        row, entries = await in_database(read)
        return StoredSession(
            header=_header(row), entries=entries, recovery=Recovery(), location=None
        )

    async def last_seq(self, session: SessionId) -> int:
        """Return the number of the last entry of a session; 0: there is no such session."""

        def read() -> int:
            query = select(SESSION.c.seq).where(SESSION.c.session == session)
            with self._database.begin() as connection:
                return int(connection.execute(query).scalar() or 0)

        return await in_database(read)

    async def delete(self, session: SessionId) -> None:
        """Remove a session and its entries."""

        def remove() -> None:
            with self._database.begin() as connection:
                row = self._row(connection, session)
                if session in self._opened:
                    raise _locked(session)
                gone = connection.execute(
                    delete(SESSION).where(SESSION.c.session == row.session, self._is_free())
                )
                if not gone.rowcount:
                    raise _locked(session)
                _ = connection.execute(delete(ENTRY).where(ENTRY.c.session == session))

        await in_database(remove)

    async def latest(self, cwd: str) -> SessionId | None:
        """Return the session of that folder with the newest last entry."""
        newest = await in_database(lambda: self._listed(cwd, limit=1))
        return newest[0].session if newest else None

    async def list(
        self, cwd: str | None = None, *, limit: int | None = None
    ) -> tuple[SessionSummary, ...]:
        """Return the sessions, newest first, at most `limit`."""
        return await in_database(lambda: self._listed(cwd, limit=limit))

    def _writer(self) -> SlotLease:
        if self._lease is None:
            message = "the sessions of the fleet are written by its workers only"
            raise StorageUnavailable(message)
        return self._lease

    def _is_free(self, lease: SlotLease = NOBODY) -> ColumnElement[bool]:
        is_written = exists().where(
            SLOT.c.id == SESSION.c.slot,
            SLOT.c.fence == SESSION.c.fence,
            SLOT.c.expires_ms > self._database.now,
        )
        is_mine = and_(SESSION.c.slot == lease.slot, SESSION.c.fence == lease.fence)
        return or_(is_mine, ~is_written)

    def _take(
        self, session: SessionId, lease: SlotLease
    ) -> tuple[Row[Any], tuple[WholeEntry, ...]]:
        is_alive = exists().where(
            SLOT.c.id == lease.slot,
            SLOT.c.fence == lease.fence,
            SLOT.c.expires_ms > self._database.now,
        )
        with self._database.begin() as connection:
            _ = self._row(connection, session)
            row = connection.execute(
                update(SESSION)
                .where(SESSION.c.session == session, self._is_free(lease), is_alive)
                .values(slot=lease.slot, fence=lease.fence)
                .returning(SESSION)
            ).first()
            if row is None:
                if not connection.execute(select(is_alive)).scalar_one():
                    message = f"slot {lease.slot} is no longer this process's (fence {lease.fence})"
                    raise FenceLost(message)
                raise _locked(session)
            return row, _entries(connection, session, row.seq)

    def _row(self, connection: Connection, session: SessionId) -> Row[Any]:
        query = select(SESSION).where(SESSION.c.session == session, SESSION.c.kind == self._kind)
        # PostgreSQL refuses the character in a text.
        row = None if "\0" in session else connection.execute(query).first()
        if row is None:
            message = f"there is no session {session!r}: list the sessions to see which there are"
            raise SessionNotFound(message)
        return row

    def _listed(self, cwd: str | None, *, limit: int | None) -> tuple[SessionSummary, ...]:
        query = select(SESSION).where(SESSION.c.kind == self._kind)
        if cwd is not None:
            query = query.where(SESSION.c.cwd == cwd)
        query = query.order_by(SESSION.c.modified_ms.desc(), SESSION.c.session).limit(limit)
        with self._database.begin() as connection:
            return tuple(_summary(row) for row in connection.execute(query))


async def in_database(use: Callable[[], _Done]) -> _Done:
    """Run blocking statements in a thread.

    Raises:
        StorageUnavailable: The database cannot be used.
    """
    try:
        return await run_sync(use)
    except SQLAlchemyError as error:
        message = f"the database of the fleet cannot be used: {reason_of(error)}"
        raise StorageUnavailable(message) from error


def _entries(connection: Connection, session: SessionId, last: int) -> tuple[WholeEntry, ...]:
    query = select(ENTRY.c.seq, ENTRY.c.entry).where(
        ENTRY.c.session == session, ENTRY.c.seq <= last
    )
    rows = connection.execute(query.order_by(ENTRY.c.seq)).all()
    try:
        if [row.seq for row in rows] == list(range(1, last + 1)):
            return tuple(decode_entry(_json_object(zlib.decompress(row.entry))) for row in rows)
    except (ValueError, zlib.error) as error:
        message = f"the session {session!r} has an entry that cannot be read: {error}"
        raise SessionDamaged(message) from error
    message = f"the session {session!r} has {len(rows)} of its {last} entries"
    raise SessionDamaged(message)


def _header(row: Row[Any]) -> Header:
    try:
        return decode_header(_json_object(row.header))
    except ValueError as error:
        message = f"the session {row.session!r} has a header that cannot be read: {error}"
        raise SessionDamaged(message) from error


def _json_object(data: bytes) -> JsonObject:
    value = json.decode(data)
    if isinstance(value, dict):
        return value
    message = "it is no JSON object"
    raise ValueError(message)


def _summary(row: Row[Any]) -> SessionSummary:
    return msgspec.json.decode(row.summary, type=threadsafe(SessionSummary))


def _of_lease(session: SessionId, lease: SlotLease) -> ColumnElement[bool]:
    return and_(
        SESSION.c.session == session, SESSION.c.slot == lease.slot, SESSION.c.fence == lease.fence
    )


def _locked(session: SessionId) -> SessionLocked:
    message = f"the session {session!r} is open already: close it there first"
    return SessionLocked(message, session=session)
