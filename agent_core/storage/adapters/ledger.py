"""The ledger in an SQLite file of the data folder, written by one thread; rows that cannot be written wait in a file."""

import logging
import os
import sqlite3
import time
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeVar

import anyio
import msgspec

from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.values import threadsafe
from agent_core.storage.ledger import (
    CallRow,
    CostQuery,
    CostReport,
    SpendingLimit,
    dollars,
    picodollars,
)

VERSION: Final = 2
BUSY_MS: Final = 100
RETRY_S: Final = 1.0
MOST_HELD: Final = 10_000
"""Rows held in memory when not even the file of waiting rows can be written; more are missing."""
CLOSE_S: Final = 5.0
WAIT_S: Final = 5.0
"""How long a reservation waits for another call of this process before it looks again."""
FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
T = TypeVar("T")
_log = logging.getLogger(__name__)

_COLUMNS: Final = CallRow.__struct_fields__
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS calls (
    id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, day TEXT NOT NULL,
    session TEXT NOT NULL, root TEXT NOT NULL, run TEXT, turn TEXT,
    folder TEXT NOT NULL, purpose TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL, price TEXT, cost INTEGER, reserved INTEGER, first_ms INTEGER, total_ms INTEGER,
    status TEXT NOT NULL, origin TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS calls_by_date ON calls (day);
DROP INDEX IF EXISTS calls_by_day;
CREATE TABLE IF NOT EXISTS spending (
    day TEXT NOT NULL, folder TEXT NOT NULL, cost INTEGER NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (day, folder)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS call_begun AFTER INSERT ON calls BEGIN
    INSERT INTO spending VALUES (
        new.day, new.folder, coalesce(new.cost, 0), CASE WHEN new.cost IS NULL THEN coalesce(new.reserved, 0) ELSE 0 END
    ) ON CONFLICT (day, folder) DO UPDATE SET cost = cost + excluded.cost, held = held + excluded.held;
END;
CREATE TRIGGER IF NOT EXISTS call_ended AFTER UPDATE ON calls BEGIN
    UPDATE spending SET
        cost = cost - coalesce(old.cost, 0) + coalesce(new.cost, 0),
        held = held - CASE WHEN old.cost IS NULL THEN coalesce(old.reserved, 0) ELSE 0 END
            + CASE WHEN new.cost IS NULL THEN coalesce(new.reserved, 0) ELSE 0 END
    WHERE day = new.day AND folder = new.folder;
END;
DELETE FROM spending;
INSERT INTO spending
    SELECT day, folder, coalesce(sum(cost), 0), coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0)
    FROM calls GROUP BY day, folder;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO facts VALUES ('created_ms', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
"""
_ROW: Final = f"INSERT INTO calls ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - names of fields
_BEGIN: Final = f"{_ROW} ON CONFLICT (id) DO NOTHING"
# The day and the folder of a call stay what they are: the triggers count on it.
_ENDED: Final = tuple(one for one in _COLUMNS if one not in {"id", "day", "folder"})
_END: Final = f"{_ROW} ON CONFLICT (id) DO UPDATE SET {', '.join(f'{one} = excluded.{one}' for one in _ENDED)}"


class SqliteLedger:
    """The ledger of a user. One thread of this process writes it, and other processes may write it too.

    Rows that cannot be written (another process has it locked, the disk is full, the file cannot be opened) are
    appended to a file beside it and taken over later. A damaged ledger is put aside, and a new one is begun.
    """

    def __init__(self, path: Path, *, busy_ms: int = BUSY_MS, retry_s: float = RETRY_S) -> None:
        """Name the file; nothing is opened before the first row.

        Args:
            path: The file.
            busy_ms: How long the writing of another process is waited for.
            retry_s: After a failure the file is left alone for so long.
        """
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._file = LedgerFile(path, busy_ms=busy_ms, retry_s=retry_s)
        self._open: dict[str, CallRow] = {}
        """Reservations of this process."""
        self._ended = anyio.Event()

    def reserve(self, row: CallRow) -> None:
        """Queue the row of a call that begins."""
        self._post(lambda: self._file.write(row))

    async def reserve_within(self, row: CallRow, limits: Sequence[SpendingLimit]) -> str | None:
        """Write the row of a call that begins unless a limit is used up.

        Returns:
            Why it may not begin: the calls of the day, those that go on at the most that they can cost, have come to a
            limit. While calls of this process can still end below the limit they are waited for.
        """
        while True:
            ended = self._ended
            refusal = await self._ask(lambda: self._file.reserve_within(row, limits))
            if refusal is None:
                self._open[row.id] = row
                return None
            # A call that ended meanwhile may have made room.
            if not ended.is_set():
                if not self._may_pass(refusal, row):
                    return refusal.text
                with anyio.move_on_after(WAIT_S):
                    await ended.wait()

    def _may_pass(self, refusal: "LimitReached", row: CallRow) -> bool:
        """Return whether calls of other sessions of this process may end below the limit."""
        if any(one.session == row.session for one in self._open.values()):
            return False  # a hook of a call that goes on would wait for its own session
        held = [
            one.reserved or 0
            for one in self._open.values()
            if refusal.folder in {None, one.folder} and one.day == row.day
        ]
        return bool(held) and refusal.used - sum(held) < refusal.limit

    async def settle(self, row: CallRow) -> None:
        """Write the row of a call that has ended; returns when it is written or waits in its file."""
        if self._open.pop(row.id, None) is not None:
            self._ended.set()
            self._ended = anyio.Event()
        await self._ask(lambda: self._file.write(row))

    async def report(self, query: CostQuery) -> CostReport:
        """Return sums over the calls.

        Raises:
            StorageUnavailable: The ledger cannot be read.
        """
        return await self._ask(lambda: self._file.report(query))

    async def created_ms(self) -> int | None:
        """Return when the ledger began, in Unix milliseconds; None: older sessions are imported already.

        Raises:
            StorageUnavailable: The ledger cannot be read.
        """
        return await self._ask(self._file.created_ms)

    async def add_imported(self, rows: Sequence[CallRow]) -> None:
        """Write the rows of older sessions, all or none, and remember that they are imported.

        Raises:
            StorageUnavailable: The ledger cannot be written now.
        """
        await self._ask(lambda: self._file.add_imported(rows))

    def close(self) -> None:
        """Write the waiting rows, as far as they can be written, and close the file. Blocking."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._jobs.put(self._file.close)
        self._jobs.put(None)
        thread.join(CLOSE_S)

    async def _ask(self, work: Callable[[], T]) -> T:
        """Return what the writing thread makes of a job; a job once given is done, also when its caller is cancelled."""
        loop = get_running_loop()
        over: Future[T] = loop.create_future()

        def job() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - raised again where the job is waited for
                _tell(loop, over, error)
            else:
                _tell(loop, over, None, result)

        self._post(job)
        return await over

    def _post(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="cost ledger", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # noqa: BLE001 - the fault of one row must not lose the following ones
                _log.exception("a row of the cost ledger is lost")


def _tell(loop: AbstractEventLoop, over: "Future[T]", error: Exception | None, *result: T) -> None:
    def end() -> None:
        if over.done():
            return
        if error is not None:
            over.set_exception(error)
        else:
            over.set_result(result[0])

    with suppress(RuntimeError):  # the loop was closed meanwhile
        _ = loop.call_soon_threadsafe(end)


class LimitReached(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that is used up."""

    text: str
    used: int
    limit: int
    folder: str | None


class LedgerFile:
    """The file of the ledger. Everything here blocks, and is called on one thread."""

    def __init__(self, path: Path, *, busy_ms: int = BUSY_MS, retry_s: float = RETRY_S) -> None:
        self._path = path
        self._busy_ms = busy_ms
        self._retry_s = retry_s
        self._waiting = path.with_suffix(".waiting.jsonl")
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._retry_at = 0.0
        self._held: deque[CallRow] = deque()
        self._missing = 0
        self._problem: str | None = None
        self._may_be_claimed = False
        """Whether a process that has ended may have left rows that it was taking over."""

    def write(self, row: CallRow) -> None:
        """Write a row; one that cannot be written waits. Never raises because of the disk."""
        if time.monotonic() < self._retry_at:
            self._keep(row)
            return
        try:
            self._put(row)
        except (sqlite3.Error, OSError) as error:
            if self._replace_damaged(error):
                self.write(row)
                return
            self._failed(error)
            self._keep(row)

    def reserve_within(self, row: CallRow, limits: Sequence[SpendingLimit]) -> LimitReached | None:
        """Write a row unless a limit is used up. When the ledger cannot be read the call may begin."""
        if time.monotonic() < self._retry_at:
            self._keep(row)
            return None
        try:
            connection = self._opened()
            with _Transaction(connection):
                for limit in limits:
                    if (refusal := _limit_reached(connection, limit)) is not None:
                        return refusal
                _ = connection.execute(_BEGIN, _values(row))
        except (sqlite3.Error, OSError) as error:
            if self._replace_damaged(error):
                return self.reserve_within(row, limits)
            self._failed(error)
            self._keep(row)
        return None

    def report(self, query: CostQuery) -> CostReport:
        """Return sums.

        Raises:
            StorageUnavailable: The ledger cannot be read.
        """
        # Few processes report: those that only write do not load it.
        from agent_core.storage.adapters.ledger_sums import read_sums  # noqa: PLC0415 - see above

        try:
            connection = self._connected()
            # Others may be writing: sums can be read all the same.
            with suppress(sqlite3.OperationalError):
                connection = self._opened()
            sums, total = read_sums(connection, query)
        except (sqlite3.Error, OSError) as error:
            if self._replace_damaged(error):
                return self.report(query)
            raise _unreadable(self._path, error) from error
        return CostReport(
            by=query.by,
            sums=sums,
            total=total,
            problems=self.problems(),
        )

    def created_ms(self) -> int | None:
        """Return when the ledger began; None: older sessions are imported already.

        Raises:
            StorageUnavailable: The ledger cannot be read.
        """
        try:
            facts: list[tuple[str, int]] = (
                self._connected().execute("SELECT name, value FROM facts").fetchall()
            )
        except (sqlite3.Error, OSError) as error:
            if self._replace_damaged(error):
                return self.created_ms()
            raise _unreadable(self._path, error) from error
        found = dict(facts)
        return None if "imported" in found else found.get("created_ms")

    def add_imported(self, rows: Sequence[CallRow]) -> None:
        """Write the rows of older sessions, all or none.

        Raises:
            StorageUnavailable: The ledger cannot be written now.
        """
        try:
            connection = self._connected()
            with _Transaction(connection):
                _ = connection.executemany(_BEGIN, map(_values, rows))
                _ = connection.execute("INSERT OR REPLACE INTO facts VALUES ('imported', 1)")
        except (sqlite3.Error, OSError) as error:
            message = f"older sessions could not be imported into the cost ledger: {error}"
            raise StorageUnavailable(message) from error

    def problems(self) -> Sequence[str]:
        """Return which rows are missing or wait, one sentence each."""
        found: list[str] = []
        if self._missing:
            found.append(
                f"{self._missing} calls are missing: neither the ledger nor the file of waiting rows could be written"
            )
        if waiting := len(self._held) + _count_rows((self._waiting, *_claimed(self._waiting))):
            why = f" ({self._problem})" if self._problem else ""
            found.append(f"{waiting} rows wait to be written{why}; the sums are without them")
        found.extend(
            f"a damaged ledger was put aside as {str(one)!r}: its calls are missing; remove the file when you do not need it"
            for one in sorted(self._path.parent.glob(f"{self._path.name}.damaged-*"))
            if not one.name.endswith(("-wal", "-shm"))
        )
        return tuple(found)

    def close(self) -> None:
        """Write what waits, as far as it can be written, and close the file."""
        try:
            if self._held or self._waiting.exists():
                self._opened()
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
        if self._held:
            _log.warning("%d rows of the cost ledger are lost: %s", len(self._held), self._problem)
        self._disconnect()

    def _put(self, row: CallRow) -> None:
        _ = self._opened().execute(_BEGIN if row.status == "open" else _END, _values(row))

    def _opened(self) -> sqlite3.Connection:
        """Return the connection; rows that wait are taken over first."""
        connection = self._connected()
        if self._has_waiting():
            self._take_over(connection)
        return connection

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode != _inode(self._path):
            self._disconnect()  # the file was removed: what we write would go nowhere
        if self._connection is None:
            self._connection = _connected(self._path, self._busy_ms)
            self._inode = _inode(self._path)
            self._may_be_claimed = True
        return self._connection

    def _has_waiting(self) -> bool:
        if self._held or self._waiting.exists():
            return True
        may_be, self._may_be_claimed = self._may_be_claimed, False
        return may_be and bool(_claimed(self._waiting))

    def _take_over(self, connection: sqlite3.Connection) -> None:
        """Write the rows that waited."""
        # The transaction keeps other processes out, so that files claimed before are those of a failure or of a dead process.
        with _Transaction(connection):
            with suppress(FileNotFoundError):
                _ = self._waiting.replace(self._waiting.with_suffix(f".{time.time_ns()}"))
            claimed = {one: one.read_bytes() for one in _claimed(self._waiting)}
            rows = [row for content in claimed.values() for row in _rows(content)]
            for row in (*rows, *self._held):
                _ = connection.execute(_BEGIN if row.status == "open" else _END, _values(row))
        for file, content in claimed.items():
            # A process that had opened the file before it was claimed may have written to it since.
            if file.stat().st_size == len(content):
                file.unlink()
        self._held.clear()
        self._problem = None

    def _keep(self, row: CallRow) -> None:
        """Have a row wait in the file beside the ledger, or in memory when that cannot be written either."""
        try:
            fd = os.open(self._waiting, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
            # A full disk may have cut the line before: this one does not continue it.
            line = b"\n" + msgspec.json.encode(row) + b"\n"
            try:
                is_cut = os.write(fd, line) < len(line)
            finally:
                os.close(fd)
        except OSError:
            is_cut = True
        if is_cut:
            if len(self._held) < MOST_HELD:
                self._held.append(row)
            else:
                self._missing += 1

    def _failed(self, error: sqlite3.Error | OSError) -> None:
        self._retry_at = time.monotonic() + self._retry_s
        if self._problem is None:
            _log.warning("the cost ledger %r cannot be written: %s", str(self._path), error)
        self._problem = str(error)
        self._disconnect()

    def _replace_damaged(self, error: sqlite3.Error | OSError) -> bool:
        """Move a damaged ledger to another name, so that a new one is created; False: it is not damaged, or cannot be moved."""
        if not str(getattr(error, "sqlite_errorname", "")).startswith(DAMAGED):
            return False
        self._disconnect()
        target = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns() // 1_000_000}")
        try:
            _ = self._path.replace(target)
            for end in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    _ = Path(f"{self._path}{end}").replace(f"{target}{end}")
        except OSError:
            return False
        _log.warning(
            "the cost ledger was damaged (%s) and is begun anew; it was put aside as %r",
            error,
            str(target),
        )
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        _ = self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        del others
        if kind is None:
            _ = self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            _ = self._connection.execute("ROLLBACK")


def _connected(path: Path, busy_ms: int) -> sqlite3.Connection:
    path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
    connection = sqlite3.connect(path, isolation_level=None, timeout=busy_ms / 1000)
    try:
        _ = connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may take the newest rows, never the file; a killed process takes nothing.
        _ = connection.execute("PRAGMA synchronous = NORMAL")
        version: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()
        if version[0][0] != VERSION:
            _ = connection.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _unreadable(path: Path, error: Exception) -> StorageUnavailable:
    return StorageUnavailable(f"the cost ledger {str(path)!r} cannot be read: {error}")


def _values(row: CallRow) -> Sequence[object]:
    return msgspec.structs.astuple(row)


def _limit_reached(connection: sqlite3.Connection, limit: SpendingLimit) -> LimitReached | None:
    folder = limit.folder
    where = "WHERE day = ?" if folder is None else "WHERE day = ? AND folder = ?"
    values = [limit.day] if folder is None else [limit.day, folder]
    sums: list[tuple[int, int]] = connection.execute(
        f"SELECT coalesce(sum(cost), 0), coalesce(sum(held), 0) FROM spending {where}",  # noqa: S608 - constants
        values,
    ).fetchall()
    spent, held = sums[0]
    most = picodollars(limit.usd)
    if spent + held < most:
        return None
    of = "today" if limit.folder is None else f"today in {limit.folder!r}"
    more = (
        f", and calls without a known end may have cost up to {dollars(held):.4f}" if held else ""
    )
    text = (
        f"the run ended at its budget: {dollars(spent):.4f} of {limit.usd:g} US dollars are spent {of} ({limit.setting}){more}; "
        "raise the budget, or go on tomorrow"
    )
    return LimitReached(text=text, used=spent + held, limit=most, folder=limit.folder)


def _claimed(waiting: Path) -> Sequence[Path]:
    """Return the files of waiting rows that a process has begun to take over."""
    return [one for one in waiting.parent.glob(f"{waiting.stem}.*") if one.suffix[1:].isdigit()]


def _rows(content: bytes) -> Sequence[CallRow]:
    rows: list[CallRow] = []
    for line in content.splitlines():
        with suppress(msgspec.MsgspecError):  # empty, or cut off with its process or its disk
            rows.append(msgspec.json.decode(line, type=threadsafe(CallRow)))
    return rows


def _count_rows(paths: Sequence[Path]) -> int:
    count = 0
    for path in paths:
        with suppress(OSError):
            count += len(_rows(path.read_bytes()))
    return count


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
