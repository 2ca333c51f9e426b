"""Full-text search of one memory file: a cache in SQLite beside it, rebuilt whenever the file differs. Blocking."""

import logging
import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.private_file import FILE_MODE, make_private_folder
from agent_core.kernel.values import Value, threadsafe
from agent_core.memory.values import TRUSTS, MemoryEntry, MemoryFile, MemoryScope
from agent_core.resources.load_result import LoadProblem

T = TypeVar("T")
log = logging.getLogger(__name__)

VERSION: Final = 1
BUSY_S: Final = 2.0
MOST_TERMS: Final = 24
"""Words of a query that are looked for."""
LEAST_CHARS: Final = 2
STOP_TERMS: Final = frozenset(
    """a about after all also an and any are as at be been before but by can could did do does for from get had has have
    how i if in into is it its just me my no not of on or our out please should so some than that the their them then
    there these they this to up us use used using was we were what when where which while who whom whose why will with
    would you your""".split()  # noqa: SIM905 - a list would take a line per word
)
"""Words of a query that nearly every text has. They are not looked for unless there is nothing else."""
_TABLES: Final = """
DROP TABLE IF EXISTS source;
DROP TABLE IF EXISTS entries;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS problems;
CREATE TABLE source (size INTEGER, mtime_ns INTEGER, inode INTEGER);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, trust INTEGER NOT NULL, day TEXT NOT NULL, expires TEXT, kind TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX entries_by_rank ON entries (trust, day DESC, id DESC);
CREATE INDEX entries_by_name ON entries (name);
CREATE TABLE problems (message TEXT NOT NULL, line INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
"""
_ENTRY: Final = (
    "INSERT INTO entries (id, name, trust, day, expires, kind, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_FIND: Final = "SELECT body FROM entries WHERE name = ? AND (expires IS NULL OR expires >= ?)"
_SEARCH: Final = """
SELECT entries.body, bm25(words) AS score FROM words JOIN entries ON entries.id = words.rowid
WHERE words MATCH ? AND (expires IS NULL OR expires >= ?) AND kind != 'rejected-finding'
ORDER BY score, entries.trust, entries.day DESC, entries.id DESC LIMIT ?
"""
_BEST: Final = """
SELECT body FROM entries WHERE (expires IS NULL OR expires >= ?) AND kind != 'rejected-finding'
ORDER BY trust, day DESC, id DESC LIMIT ?
"""
_TERM: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED: Final = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
"""Scripts that put no spaces between words: each character is a word."""
_Stamp = tuple[int, int, int]


class MemoryHit(Value, frozen=True):
    """An entry that a search found."""

    entry: MemoryEntry
    score: float
    """Larger is better; comparable within one scope, and roughly between scopes."""


class MemoryIndex:
    """Searches the entries of one scope. Each scope has a file of its own, so no query can see another's entries."""

    def __init__(
        self, scope: MemoryScope, *, path: Path, read: Callable[[MemoryScope], MemoryFile]
    ) -> None:
        """Create the index; nothing is opened yet.

        Args:
            scope: The scope.
            path: Its memory file.
            read: Reads that file.
        """
        self._scope = scope
        self._file = path
        self._path = path.with_suffix(".sqlite3")
        self._read = read

    def search(self, query: str, *, limit: int, today: str) -> list[MemoryHit]:
        """Return the entries that fit a query best; those that have expired, and rejected findings, are left out.

        Raises:
            ConfigError: The memory file cannot be read.
            StorageUnavailable: The index cannot be used.
        """
        match = query_of(query)
        if not match:
            return []

        def find(connection: sqlite3.Connection) -> list[tuple[bytes, float]]:
            return connection.execute(_SEARCH, (match, today, limit)).fetchall()

        return [MemoryHit(self._decoded(body), -score) for body, score in self._ask(find)]

    def best(self, *, limit: int, today: str) -> list[MemoryEntry]:
        """Return the most reliable entries, of these the newest first.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """

        def find(connection: sqlite3.Connection) -> list[tuple[bytes]]:
            return connection.execute(_BEST, (today, limit)).fetchall()

        return [self._decoded(body) for (body,) in self._ask(find)]

    def find(self, ids: Sequence[str], *, today: str) -> list[MemoryEntry]:
        """Return those of some entries that are there and have not expired.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """

        def find(connection: sqlite3.Connection) -> list[tuple[bytes]]:
            rows: list[tuple[bytes]] = []
            for one in ids:
                rows += connection.execute(_FIND, (one, today)).fetchall()
            return rows

        return [self._decoded(body) for (body,) in self._ask(find)]

    def problems(self) -> list[LoadProblem]:
        """Return the parts of the file that could not be read.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """

        def find(connection: sqlite3.Connection) -> list[tuple[str, int | None]]:
            return connection.execute("SELECT message, line FROM problems").fetchall()

        return [
            LoadProblem(message=message, path=self._file, line=line)
            for message, line in self._ask(find)
        ]

    def _decoded(self, body: bytes) -> MemoryEntry:
        return msgspec.msgpack.decode(body, type=threadsafe(MemoryEntry))

    def _ask(self, find: Callable[[sqlite3.Connection], list[T]]) -> list[T]:
        stamp = _stamp(self._file)
        if stamp is None:
            return []
        for is_last in (False, True):
            try:
                with closing(self._opened()) as connection:
                    self._update(connection, stamp)
                    return find(connection)
            except (sqlite3.Error, msgspec.DecodeError, OSError) as error:
                if is_last:
                    message = f"the memory cannot be searched ({error}); {self._path} is a cache that may be deleted"
                    raise StorageUnavailable(message) from error
                log.warning("the index %s is made anew: %s", self._path, error)
                self._remove()
        return []

    def _opened(self) -> sqlite3.Connection:
        make_private_folder(self._path.parent)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE))
        return sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)

    def _update(self, connection: sqlite3.Connection, stamp: _Stamp) -> None:
        """Read the file again if it is not the one that was read."""
        if _indexed(connection) == stamp:
            return
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        file = self._read(self._scope)
        for number, entry in enumerate(file.entries, 1):
            row = (
                number,
                entry.id,
                TRUSTS.index(entry.trust),
                entry.used or entry.created or "",
                entry.expires,
                entry.kind,
                msgspec.msgpack.encode(entry),
            )
            connection.execute(_ENTRY, row)
            terms = stored_form(f"{entry.text} {entry.path or ''}")
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, terms))
        for problem in file.problems:
            row = (problem.message, problem.line)
            connection.execute("INSERT INTO problems VALUES (?, ?)", row)
        connection.execute("INSERT INTO source VALUES (?, ?, ?)", stamp)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")

    def _remove(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()


def stored_form(text: str) -> str:
    """Return a text as words: names in camel case with their parts, characters of unspaced scripts apart."""
    terms: list[str] = []
    for match in _TERM.finditer(unicodedata.normalize("NFC", text)):
        word = match[0]
        terms.append(_UNSPACED.sub(r" \1 ", word))
        parts = _HUMP.split(word)
        if len(parts) > 1:
            terms.extend(parts)
    return " ".join(terms)


def query_of(text: str) -> str:
    """Return a query of FTS5 for any of the words of a text; empty: it has none."""
    terms = dict.fromkeys(word.lower() for word in stored_form(text).split())
    long = [term for term in terms if len(term) >= LEAST_CHARS or not term.isascii()]
    telling = [term for term in long if term not in STOP_TERMS] or long
    return " OR ".join(f'"{term}"' for term in telling[:MOST_TERMS])


def merged(hits: Sequence[Sequence[MemoryHit]], *, limit: int) -> list[MemoryHit]:
    """Return the best hits of several scopes."""
    return sorted((one for each in hits for one in each), key=lambda one: -one.score)[:limit]


def _stamp(path: Path) -> _Stamp | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def _indexed(connection: sqlite3.Connection) -> _Stamp | None:
    version: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()
    if version != [(VERSION,)]:
        return None
    rows: list[_Stamp] = connection.execute("SELECT size, mtime_ns, inode FROM source").fetchall()
    return rows[0] if rows else None
