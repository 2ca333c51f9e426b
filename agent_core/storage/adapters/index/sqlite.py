"""The index of sessions in an SQLite file beside them; without one that can be used, in memory."""

import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from agent_core.kernel.errors import IndexUnavailable
from agent_core.storage.adapters.index import queries, updates
from agent_core.storage.adapters.index.tables import BUSY, DAMAGED, connect, remove
from agent_core.storage.index import Hit
from agent_core.storage.port import SessionSummary

CLOSE_S = 5.0
T = TypeVar("T")
_log = logging.getLogger(__name__)


class SqliteIndex:
    """Indexes the session files of a folder.

    A file of the index that is damaged is made anew. Where none can be written, the index is built in memory, which
    takes longer and says so in `problem`.
    """

    def __init__(self, sessions: Path, path: Path) -> None:
        """Name the places; nothing is opened yet.

        Args:
            sessions: The folder of the session files.
            path: The index's own file.
        """
        self._sessions = sessions
        self._path: Path | None = path
        self._is_anew = False
        """The file was damaged and has been removed once."""
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._problem: str | None = None
        self._turn = CapacityLimiter(1)
        # The limiter orders the callers; the lock also holds when a caller was torn away from its thread.
        self._using = Lock()
        self._closing = Event()

    @property
    def problem(self) -> str | None:
        """Problem of the index; None: there is none so far."""
        return self._problem

    async def refresh(self) -> None:
        """Read what is new in the files."""
        await self._run(lambda _: None)

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return the sessions, newest first."""
        return await self._run(partial(queries.listed, cwd=cwd))

    async def search(
        self, query: str, *, cwd: str | None = None, limit: int = 50, offset: int = 0
    ) -> tuple[Hit, ...]:
        """Find sessions that hold all the words, best first."""
        return await self._run(
            partial(queries.search, query=query, cwd=cwd, limit=limit, offset=offset)
        )

    async def close(self) -> None:
        """Close the index file."""
        self._closing.set()
        with anyio.move_on_after(CLOSE_S, shield=True):
            await to_thread.run_sync(self._close, abandon_on_cancel=True)

    async def _run(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Read what is new, then ask, in a thread that stops soon after the caller was cancelled."""
        stop = Event()
        try:
            return await to_thread.run_sync(
                self._use, ask, stop, limiter=self._turn, abandon_on_cancel=True
            )
        finally:
            stop.set()

    def _use(self, ask: Callable[[sqlite3.Connection], T], stop: Event) -> T:
        with self._using:
            while True:
                try:
                    connection = self._opened()
                    self._refresh(connection, stop)
                    return ask(connection)
                except (sqlite3.Error, OSError) as error:
                    self._fall_back(error)

    def _refresh(self, connection: sqlite3.Connection, stop: Event) -> None:
        def is_over() -> bool:
            return stop.is_set() or self._closing.is_set()

        try:
            updates.refresh(connection, self._sessions, stop=is_over)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname not in BUSY:
                raise
            self._problem = "another process is writing the index of the sessions: what is newest may be missing"

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode != _inode(self._path):
            self._disconnect()  # the file was deleted: what we write would go nowhere
        if self._connection is None:
            self._connection = connect(self._path)
            self._inode = _inode(self._path)
        return self._connection

    def _fall_back(self, error: sqlite3.Error | OSError) -> None:
        """Choose what to try next.

        Raises:
            IndexUnavailable: There is nothing left to try.
        """
        self._disconnect()
        if self._path is None:
            message = f"sessions cannot be searched on this system: {error}"
            raise IndexUnavailable(message) from error
        if getattr(error, "sqlite_errorname", None) in DAMAGED and not self._is_anew:
            _log.warning("the index %r is damaged and is made anew: %s", str(self._path), error)
            remove(self._path)
            self._is_anew = True
            return
        self._problem = (
            f"the index {str(self._path)!r} cannot be used ({error}): "
            "the sessions were searched without it, which is slower"
        )
        self._path = None

    def _close(self) -> None:
        with self._using:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _inode(path: Path | None) -> int | None:
    try:
        return None if path is None else path.stat().st_ino
    except OSError:
        return None
