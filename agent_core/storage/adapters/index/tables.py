"""The tables of the index in SQLite. Everything here blocks."""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from agent_core.kernel import SessionId
from agent_core.kernel.values import Value
from agent_core.storage.adapters.index.lines import FileStamp
from agent_core.storage.adapters.index.texts import IndexedText
from agent_core.storage.adapters.index.tokenizer import composed, stored_form
from agent_core.storage.adapters.paths import FILE_MODE, make_folder
from agent_core.storage.port import SessionSummary

VERSION = 2
"""Of the tables and of what is put into them; another number means that all is read anew."""
BUSY_S = 10.0
"""How long another process's writing is waited for."""
SWITCH_AGAIN_S = 0.005
DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})
BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED"})

_UNFINISHED = FileStamp(size=-1, mtime_ns=-1, inode=-1)
_TABLES = """
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS pieces;
DROP TABLE IF EXISTS words;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    read_bytes INTEGER NOT NULL, mark BLOB NOT NULL,
    session TEXT, cwd TEXT NOT NULL, created_ms INTEGER NOT NULL, modified_ms INTEGER NOT NULL,
    messages INTEGER NOT NULL, title TEXT, preview TEXT NOT NULL, model TEXT, parent TEXT
);
CREATE TABLE pieces (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, entry TEXT, is_title INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE INDEX pieces_by_file ON pieces (file);
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'ascii');
"""
_ALL = """
SELECT path, id, size, mtime_ns, inode, read_bytes, mark,
    session, cwd, created_ms, modified_ms, messages, title, preview, model, parent
FROM files
"""
_ONE = _ALL + " WHERE path = ?"
_INSERT = """
INSERT INTO files (path, size, mtime_ns, inode, read_bytes, mark, cwd, created_ms, modified_ms, messages, preview)
VALUES (?, -1, -1, -1, 0, x'', '', 0, 0, 0, '')
"""
_UPDATE = """
UPDATE files SET size = ?, mtime_ns = ?, inode = ?, read_bytes = ?, mark = ?,
    session = ?, cwd = ?, created_ms = ?, modified_ms = ?, messages = ?, title = ?, preview = ?, model = ?, parent = ?
WHERE id = ?
"""
_Summed = tuple[str | None, str, int, int, int, str | None, str, str | None, str | None]
_Record = tuple[bytes, int, int, int, int, int, bytes, *_Summed]
_NO_SESSION: _Summed = (None, "", 0, 0, 0, None, "", None, None)


class IndexRow(Value, frozen=True, kw_only=True):
    """Indexed state of a file."""

    id: int
    stamp: FileStamp
    read_bytes: int
    mark: bytes
    """Of the first `read_bytes` bytes."""
    summary: SessionSummary | None
    """None: it is no session."""


class IndexUpdate(Value, frozen=True, kw_only=True):
    """A part of a file that was read, to be written down."""

    path: Path
    before: IndexRow | None
    """The row of the file when the reading began; None: the file was not in the index."""
    is_fresh: bool
    """Nothing of what was known still holds."""
    stamp: FileStamp | None
    """None: there is more to read."""
    read_bytes: int
    mark: bytes
    summary: SessionSummary | None
    pieces: tuple[IndexedText, ...]


def connect(path: Path | None) -> sqlite3.Connection:
    """Open the index, with its tables; those of another version are emptied.

    Args:
        path: None: in memory.

    Raises:
        OSError: The file cannot be made.
        sqlite3.Error: It cannot be used.
    """
    if path is not None:
        make_folder(path.parent)
        # What was said is for the user's eyes only; SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
    connection = sqlite3.connect(
        ":memory:" if path is None else path,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if not _is_current(connection):
            _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the journal. Where others do the same SQLite fails at once, whatever its time limit is, so it is tried again."""
    until_s = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname not in BUSY or time.monotonic() > until_s:
                raise
            time.sleep(SWITCH_AGAIN_S)
        else:
            return


def remove(path: Path) -> None:
    """Remove the index's files. Never raises."""
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()


def rows(connection: sqlite3.Connection) -> dict[bytes, IndexRow]:
    """Return what is known, by path."""
    found: list[_Record] = connection.execute(_ALL).fetchall()
    return dict(map(_row, found))


def find(connection: sqlite3.Connection, path: Path) -> IndexRow | None:
    """Return what is known of a file."""
    found: list[_Record] = connection.execute(_ONE, (os.fsencode(path),)).fetchall()
    return _row(found[0])[1] if found else None


def forget(connection: sqlite3.Connection, row: IndexRow) -> None:
    """Forget a file."""
    _forget_pieces(connection, row.id)
    connection.execute("DELETE FROM files WHERE id = ?", (row.id,))


def write(connection: sqlite3.Connection, step: IndexUpdate) -> None:
    """Write down what was read; in the same transaction in which `before` was found."""
    if step.before is None:
        file = _insert(connection, step.path)
    else:
        file = step.before.id
        if step.is_fresh:
            _forget_pieces(connection, file)
    _update(connection, file, step)
    _put_title(connection, file, step)
    for piece in step.pieces:
        _put(connection, file, piece, is_title=0)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Do several things or nothing, alone among all processes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_current(connection: sqlite3.Connection) -> bool:
    found: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()
    return found == [(VERSION,)]


def _make_tables(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if _is_current(connection):
            return  # another process was faster
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _row(found: _Record) -> tuple[bytes, IndexRow]:
    """Name the columns of a row."""
    path, number, size, mtime_ns, inode, read_bytes, mark, *_ = found
    row = IndexRow(
        id=number,
        stamp=FileStamp(size=size, mtime_ns=mtime_ns, inode=inode),
        read_bytes=read_bytes,
        mark=mark,
        summary=_summary(path, found[7:]),
    )
    return path, row


def _summary(path: bytes, found: _Summed) -> SessionSummary | None:
    session, cwd, created_ms, modified_ms, messages, title, preview, model, parent = found
    if session is None:
        return None
    return SessionSummary(
        session=SessionId(session),
        location=Path(os.fsdecode(path)),
        cwd=cwd,
        created_ms=created_ms,
        modified_ms=modified_ms,
        messages=messages,
        title=title,
        preview=preview,
        model=model,
        parent=parent,
    )


def _summed(one: SessionSummary) -> _Summed:
    return (
        one.session,
        one.cwd,
        one.created_ms,
        one.modified_ms,
        one.messages,
        one.title,
        one.preview,
        one.model,
        one.parent,
    )


def _insert(connection: sqlite3.Connection, path: Path) -> int:
    added = connection.execute(_INSERT, (os.fsencode(path),))
    return added.lastrowid or 0


def _update(connection: sqlite3.Connection, file: int, step: IndexUpdate) -> None:
    seen = step.stamp or _UNFINISHED
    summed = _NO_SESSION if step.summary is None else _summed(step.summary)
    file_state = (seen.size, seen.mtime_ns, seen.inode, step.read_bytes, step.mark)
    connection.execute(_UPDATE, (*file_state, *summed, file))


def _put_title(connection: sqlite3.Connection, file: int, step: IndexUpdate) -> None:
    before = None if step.is_fresh or step.before is None else step.before.summary
    old = before.title if before else None
    new = step.summary.title if step.summary else None
    if new == old:
        return
    if old is not None:
        _forget_pieces(connection, file, what="title")
    if new is not None:
        _put(connection, file, IndexedText(None, composed(new)), is_title=1)


def _put(connection: sqlite3.Connection, file: int, piece: IndexedText, *, is_title: int) -> None:
    added = connection.execute(
        "INSERT INTO pieces (file, entry, is_title, text) VALUES (?, ?, ?, ?)",
        (file, piece.entry, is_title, piece.text),
    )
    connection.execute(
        "INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, stored_form(piece.text))
    )


def _forget_pieces(
    connection: sqlite3.Connection, file: int, *, what: Literal["all", "title"] = "all"
) -> None:
    """Remove the texts of a file, all or its title, from the index; FTS5 needs the former text for that."""
    last = 1 if what == "title" else 0
    found: list[tuple[int, str]] = connection.execute(
        "SELECT id, text FROM pieces WHERE file = ? AND is_title >= ?", (file, last)
    ).fetchall()
    gone = ((number, stored_form(text)) for number, text in found)
    connection.executemany("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", gone)
    connection.execute("DELETE FROM pieces WHERE file = ? AND is_title >= ?", (file, last))
