"""Brings the index up to date with the session files. Everything here blocks."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from agent_core.kernel import JsonObject
from agent_core.storage.adapters.diagnosis import HEADER_BYTES
from agent_core.storage.adapters.index.lines import FileStamp, lines, mark, open_file, stamp
from agent_core.storage.adapters.index.tables import (
    IndexRow,
    IndexUpdate,
    find,
    forget,
    rows,
    transaction,
    write,
)
from agent_core.storage.adapters.index.texts import IndexedText, piece_of
from agent_core.storage.adapters.paths import session_files
from agent_core.storage.port import SessionSummary
from agent_core.storage.summary import SessionSummaryBuilder
from agent_core.transcript.codec import HEADER_TYPE, decode_header
from agent_core.transcript.entries import Header

STEP_BYTES = 4 << 20
"""How much is read before it is written down: others can write in between, and we can be stopped."""
FILE_BYTES = 4096
"""Minimum size that is counted for a file, in bytes."""


def refresh(connection: sqlite3.Connection, folder: Path, *, stop: Callable[[], bool]) -> None:
    """Index new content in a folder of sessions, newest files first, and remove deleted files from the index.

    Args:
        connection: The connection to the index.
        folder: The folder of the sessions.
        stop: Called between steps; after True, the next refresh does the rest.
    """
    indexed = rows(connection)
    stale: list[tuple[FileStamp, Path]] = []
    for path in session_files(folder):
        seen = stamp(path)
        row = indexed.pop(os.fsencode(path), None)
        if seen is not None and (row is None or row.stamp != seen):
            stale.append((seen, path))
    if indexed:
        with transaction(connection):
            for row in indexed.values():
                forget(connection, row)
    stale.sort(key=lambda one: one[0].mtime_ns)
    while stale and not stop():
        _step(connection, stale)


def _step(connection: sqlite3.Connection, stale: list[tuple[FileStamp, Path]]) -> None:
    """Read some of what is stale, from the end of the list, and take from the list what is done.

    Others wait meanwhile and then find it done: no two processes read the same.
    """
    room = STEP_BYTES
    with transaction(connection):
        while stale and room > 0:
            seen, path = stale[-1]
            try:
                took, is_done = _read(connection, path, seen=seen, room=room)
            except OSError:
                took, is_done = 0, True  # gone, or not ours to read
            room -= max(took, FILE_BYTES)
            if is_done:
                stale.pop()


def _read(
    connection: sqlite3.Connection, path: Path, *, seen: FileStamp, room: int
) -> tuple[int, bool]:
    """Read a file from where it was left; gives how many bytes were read, and whether it is done."""
    row = find(connection, path)
    if row is not None and row.stamp == seen:
        return 0, True  # another process was faster
    with open_file(path) as file:
        reading = _Reading(path, file, seen=seen, row=row)
        took, is_done = reading.run(room)
        write(connection, reading.step(seen if is_done else None))
    return took, is_done


class _Reading:
    """Reads a part of one file."""

    def __init__(
        self, path: Path, file: BinaryIO, *, seen: FileStamp, row: IndexRow | None
    ) -> None:
        self._path = path
        self._file = file
        self._row = row
        self._end = 0
        self._tally: SessionSummaryBuilder | None = None
        self._pieces: list[IndexedText] = []
        self._is_fresh = True
        if row is not None and row.summary is not None and _goes_on(file, row, seen):
            self._is_fresh = False
            self._end = row.read_bytes
            self._tally = SessionSummaryBuilder(_header_of(row.summary), previous=row.summary)

    def run(self, room: int) -> tuple[int, bool]:
        """Read about so many bytes; gives how many it were, and whether there is nothing more to read."""
        start = self._end
        for line in lines(self._file, start):
            self._end = line.end
            if line.raw is not None and not self._take(line.raw):
                return self._end - start, True
            is_over = self._end - start >= (HEADER_BYTES if self._tally is None else room)
            if is_over:
                return self._end - start, self._tally is None
        return self._end - start, True

    def step(self, seen: FileStamp | None) -> IndexUpdate:
        """Return what was read, to be written down."""
        return IndexUpdate(
            path=self._path,
            before=self._row,
            is_fresh=self._is_fresh,
            stamp=seen,
            read_bytes=self._end,
            mark=mark(self._file, self._end),
            summary=None if self._tally is None else self._tally.summary(self._path),
            pieces=tuple(self._pieces),
        )

    def _take(self, raw: JsonObject) -> bool:
        """Read a line; return False if it should be a header and is none."""
        if self._tally is None:
            try:
                self._tally = SessionSummaryBuilder(decode_header(raw))
            except ValueError:
                return False
            return True
        if raw.get("type") != HEADER_TYPE:
            self._tally.take(raw)
            piece = piece_of(raw)
            if piece is not None:
                self._pieces.append(piece)
        return True


def _goes_on(file: BinaryIO, row: IndexRow, seen: FileStamp) -> bool:
    """Return whether a file has only grown: the part that was read is still its beginning."""
    is_unfinished = row.stamp.inode < 0
    has_grown = row.stamp.inode == seen.inode and seen.size > row.read_bytes
    if row.summary is None or not (has_grown or is_unfinished):
        return False
    return mark(file, row.read_bytes) == row.mark


def _header_of(summary: SessionSummary) -> Header:
    return Header(
        id=summary.session,
        at_ms=summary.created_ms,
        cwd=summary.cwd,
        parent_session=summary.parent,
    )
