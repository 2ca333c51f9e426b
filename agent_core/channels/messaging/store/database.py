"""The SQLite file of one account of a platform: its tables, and transactions in a worker thread, one at a time."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import anyio
import msgspec

from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.private_file import FILE_MODE, make_private_folder
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import threadsafe

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
Transaction = sqlite3.Connection
"""A connection inside a transaction."""
BUSY_S: Final = 5.0
DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_VERSION_1: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT,
    sender TEXT NOT NULL, body TEXT NOT NULL, at_ms INTEGER NOT NULL, received_ms INTEGER NOT NULL,
    state TEXT NOT NULL, batch TEXT, message_id TEXT NOT NULL, binding INTEGER, session TEXT, run TEXT, queue_id TEXT,
    reason TEXT NOT NULL, tries INTEGER NOT NULL, next_ms INTEGER NOT NULL
);
CREATE INDEX inbox_by_state ON inbox (state, id);
CREATE INDEX inbox_by_message ON inbox (message_id);
CREATE INDEX inbox_by_place ON inbox (chat, thread, at_ms);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, chat TEXT NOT NULL, thread TEXT, binding INTEGER,
    body TEXT NOT NULL, state TEXT NOT NULL, is_optional INTEGER NOT NULL, created_ms INTEGER NOT NULL, tries INTEGER NOT NULL,
    next_ms INTEGER NOT NULL, tried_ms INTEGER, message TEXT, reason TEXT NOT NULL
);
CREATE INDEX outbox_by_state ON outbox (state, chat, id);
CREATE INDEX outbox_by_message ON outbox (message);
CREATE TABLE bindings (
    id INTEGER PRIMARY KEY, chat TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, root TEXT,
    session TEXT NOT NULL, workspace TEXT NOT NULL, created_by TEXT NOT NULL, created_ms INTEGER NOT NULL,
    UNIQUE (chat, place)
);
CREATE INDEX bindings_by_session ON bindings (session);
CREATE TABLE approvals (
    request TEXT PRIMARY KEY, kind TEXT NOT NULL, session TEXT NOT NULL, run TEXT, binding INTEGER NOT NULL, chat TEXT NOT NULL,
    message TEXT, prompt TEXT NOT NULL, answers TEXT NOT NULL, code TEXT NOT NULL, state TEXT NOT NULL,
    option TEXT NOT NULL, by_id TEXT NOT NULL, by_name TEXT NOT NULL, settlement TEXT, created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX approvals_by_session ON approvals (session, state);
CREATE TABLE cursors (
    session TEXT PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, used_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE answers (
    run TEXT PRIMARY KEY, key TEXT NOT NULL, message TEXT NOT NULL, thread TEXT, token TEXT NOT NULL, created_ms INTEGER NOT NULL
) WITHOUT ROWID;
"""
MIGRATIONS: Final = (_VERSION_1,)
"""Scripts that bring a file to the next version, from the first on."""


class MessagingDatabase:
    """The file of one account. `open` comes first; transactions run one after the other."""

    def __init__(self, path: Path, *, channel: str, account: str) -> None:
        """Name the file.

        Args:
            path: The file; its folder is made.
            channel: Name of the platform.
            account: Id of the app or bot.
        """
        self._path = path
        self._owner = f"{channel} {account}"
        self._turn = anyio.Lock()
        # A cancelled task leaves its transaction to itself: the next one, and `close`, wait for it.
        self._in_use = Lock()
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the file and bring it to the present version.

        Raises:
            StorageUnavailable: It is damaged, of a newer version or of another account, or cannot be opened.
        """
        async with self._turn:
            self._connection = await run_in_thread(self._opened)

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of a function that runs in a transaction, which is on the disk when this returns.

        Args:
            work: Function that is called in a worker thread; an exception of it undoes the transaction.

        Raises:
            StorageUnavailable: The file cannot be read or written.
        """
        async with self._turn:
            return await run_in_thread(self._run, work)

    def close(self) -> None:
        """Close the file, after the transaction that runs. Blocking."""
        with self._in_use:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _run(self, work: Callable[[Transaction], T]) -> T:
        with self._in_use:
            return self._run_alone(work)

    def _run_alone(self, work: Callable[[Transaction], T]) -> T:
        connection = self._connection
        if connection is None:
            message = f"The file of chat messages {str(self._path)!r} is not open."
            raise StorageUnavailable(message)
        try:
            _ = connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            raise self._fault(error) from error
        return result

    def _opened(self) -> sqlite3.Connection:
        try:
            make_private_folder(self._path.parent)
            # Without a moment in which others may read it.
            self._path.touch(mode=FILE_MODE)
            connection = sqlite3.connect(
                self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise self._fault(error) from error
        try:
            self._prepare(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._fault(error) from error
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # FULL: an acknowledgement follows the write, and the platform does not repeat what was acknowledged.
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            _ = connection.execute(f"PRAGMA {pragma}")
        version = msgspec.convert(connection.execute("PRAGMA user_version").fetchone(), tuple[int])[
            0
        ]
        if version > len(MIGRATIONS):
            message = (
                f"The file of chat messages {str(self._path)!r} has version {version}, this program reads up to "
                f"{len(MIGRATIONS)}; update Tiller."
            )
            raise StorageUnavailable(message)
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            _ = connection.executescript(f"BEGIN;{script}PRAGMA user_version = {number};COMMIT;")
        _ = connection.execute("INSERT OR IGNORE INTO facts VALUES ('owner', ?)", (self._owner,))
        ((owner,),) = msgspec.convert(
            connection.execute("SELECT value FROM facts WHERE name = 'owner'").fetchall(),
            list[tuple[str]],
        )
        if owner != self._owner:
            message = (
                f"The file of chat messages {str(self._path)!r} belongs to the account {owner!r}, not to "
                f"{self._owner!r}; name another file."
            )
            raise StorageUnavailable(message)

    def _fault(self, error: OSError | sqlite3.Error) -> StorageUnavailable:
        place = f"The file of chat messages {str(self._path)!r}"
        if isinstance(error, sqlite3.Error) and error.sqlite_errorname in DAMAGED:
            return StorageUnavailable(
                f"{place} is damaged ({error}); move it away and start again. Messages without an answer have to be sent again."
            )
        return StorageUnavailable(
            f"{place} cannot be used: {error}; free some disk space or make its folder writable."
        )


def rows_of(transaction: Transaction, shape: type[R], query: str, *values: object) -> list[R]:
    """Return the rows of a query as values; its columns are their fields."""
    cursor = transaction.execute(query, values)
    names = [str(column[0]) for column in cursor.description]
    return [
        msgspec.convert(dict(zip(names, row, strict=True)), threadsafe(shape), strict=False)
        for row in _rows(cursor)
    ]


def row_of(transaction: Transaction, shape: type[R], query: str, *values: object) -> R | None:
    """Return the first row of a query as a value; None: there is none."""
    rows = rows_of(transaction, shape, query, *values)
    return rows[0] if rows else None


def counts_of(transaction: Transaction, query: str, *values: object) -> dict[str, int]:
    """Return the rows of a query with two columns, a name and a count."""
    rows = transaction.execute(query, values).fetchall()
    return dict(msgspec.convert(rows, list[tuple[str, int]]))


def _rows(cursor: sqlite3.Cursor) -> list[tuple[object, ...]]:
    return cursor.fetchall()
