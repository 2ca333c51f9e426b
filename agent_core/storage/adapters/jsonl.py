"""Sessions as files of JSON lines, one folder for each workspace."""

import logging
import os
from collections.abc import Container, Sequence
from pathlib import Path
from threading import Lock

import anyio
from anyio import CapacityLimiter, to_thread

from agent_core.kernel import Clock, JsonObject, SessionId, json, new_entry_id
from agent_core.kernel.errors import SessionClosed, StorageUnavailable
from agent_core.storage.adapters import scan
from agent_core.storage.adapters.durable import flush
from agent_core.storage.adapters.paths import FILE_MODE, file_name, slug
from agent_core.storage.adapters.recovery import Tail, recover
from agent_core.storage.adapters.session_file import SessionFile, unavailable
from agent_core.storage.held import begins_session
from agent_core.storage.port import Opened, Recovery, SessionSummary
from agent_core.transcript.codec import encode_entry, encode_header
from agent_core.transcript.entries import AnyEntry, Header

CLOSE_S = 10.0
"""How long closing waits for the disk before it goes on without it."""
DAMAGED_SUFFIX = ".damaged"
"""Beside a session: what was cut off its end."""
OLD_SUFFIX = ".old"
"""Beside a session: the file as it was before it was brought to today's format."""
_log = logging.getLogger(__name__)


class JsonlLog:
    """One session file, opened for writing; made with the first words that are said."""

    def __init__(self, header: Header, *, location: Path, file: SessionFile | None) -> None:
        self._header = header
        self._location = location
        self._file = file
        self._held: list[AnyEntry] = []
        self._is_closed = False
        self._turn = CapacityLimiter(1)
        # The limiter orders the callers; the lock also holds when a caller was torn away from its thread.
        self._writing = Lock()

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._header

    @property
    def location(self) -> Path | None:
        """The file, which may not exist yet."""
        return self._location

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Write entries. Cancelled before it began, nothing is written; once begun it finishes."""
        await to_thread.run_sync(self._append, tuple(entries), limiter=self._turn)

    async def sync(self) -> None:
        """Make everything appended survive a power cut."""
        await to_thread.run_sync(self._sync, limiter=self._turn)

    async def close(self) -> None:
        """Sync and let go of the lock."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            await to_thread.run_sync(self._close, limiter=self._turn, abandon_on_cancel=True)

    def _append(self, entries: tuple[AnyEntry, ...]) -> None:
        with self._writing:
            if self._is_closed:
                message = f"the session {self._header.id!r} was closed: open it again to write"
                raise SessionClosed(message)
            if self._file is not None:
                self._file.append([encode_entry(entry) + b"\n" for entry in entries])
            elif begins_session(entries):
                lines = [encode_header(self._header), *map(encode_entry, [*self._held, *entries])]
                self._file = SessionFile.born(self._location, b"\n".join([*lines, b""]))
                self._held.clear()
            else:
                self._held.extend(entries)

    def _sync(self) -> None:
        with self._writing:
            if self._file is not None and not self._is_closed:
                self._file.sync()

    def _close(self) -> None:
        with self._writing:
            if self._is_closed:
                return
            self._is_closed = True
            if self._file is None:
                return
            try:
                self._file.sync()
            except StorageUnavailable as error:
                _log.warning("on closing: %s", error)
            self._file.close()


class JsonlStore:
    """Keeps sessions in `<folder>/<workspace>/<time>_<id>.jsonl`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    async def create(self, header: Header) -> JsonlLog:
        """Begin a session; nothing is written yet.

        Raises:
            UsageError: The session's id cannot be part of a file name.
        """
        location = self._folder / slug(header.cwd) / file_name(header)
        return JsonlLog(header, location=location, file=None)

    async def open(self, session: SessionId) -> Opened:
        """Open a session for writing; a file of an older format is brought to today's."""
        return await to_thread.run_sync(self._open, session)

    async def latest(self, cwd: str) -> SessionId | None:
        """Give the session of that folder with the newest last entry."""
        return await to_thread.run_sync(scan.latest, self._folder, cwd, abandon_on_cancel=True)

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Give the sessions that can be read, newest first."""
        return await to_thread.run_sync(scan.summaries, self._folder, cwd, abandon_on_cancel=True)

    def _open(self, session: SessionId) -> Opened:
        file = SessionFile.opened(scan.find(self._folder, session))
        try:
            return self._read(file)
        except OSError as error:
            file.close()
            raise unavailable(file.path, "read", error) from error
        except BaseException:
            file.close()
            raise

    def _read(self, file: SessionFile) -> Opened:
        found = recover(file.read(), name=str(file.path), new_id=self._new_id)
        damaged = None
        if found.migrated is not None:
            _rewrite(file, found.migrated)
        else:
            damaged = _mend(file, found.tail)
        return Opened(
            log=JsonlLog(found.header, location=file.path, file=file),
            entries=found.entries,
            recovery=Recovery(torn_tail=damaged, skipped_lines=found.skipped_lines),
        )

    def _new_id(self, taken: Container[object]) -> str:
        return new_entry_id(taken, at_ms=self._clock.now_ms())


def _rewrite(file: SessionFile, lines: Sequence[JsonObject]) -> None:
    content = b"".join(json.encode(line) + b"\n" for line in lines)
    file.rewrite(content, old=file.path.with_name(file.path.name + OLD_SUFFIX))


def _mend(file: SessionFile, tail: Tail | None) -> Path | None:
    """Put the end of a file right; gives where a cut-off fragment was kept.

    On a full or failing disk the file stays as it is: the next line that is written begins with a newline, so
    nothing is glued to what is there.
    """
    if tail is None:
        return None
    kept: Path | None = None
    try:
        if tail.fragment:
            kept = file.path.with_name(file.path.name + DAMAGED_SUFFIX)
            _add_line(kept, tail.fragment)
        file.cut(tail.keep)
        if tail.newline:
            file.end_line()
        file.sync()
    except (OSError, StorageUnavailable) as error:
        _log.warning("the end of %r could not be put right: %s", str(file.path), error)
    return kept


def _add_line(path: Path, fragment: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
    try:
        os.write(fd, fragment + b"\n")
        flush(fd)
    finally:
        os.close(fd)
