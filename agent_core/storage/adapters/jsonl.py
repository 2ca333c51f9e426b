"""Sessions as files of JSON lines, one folder for each workspace."""

import itertools
import logging
import os
from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from agent_core.kernel import Clock, EntryId, SessionId, new_entry_id
from agent_core.kernel.errors import (
    SessionClosed,
    SessionDamaged,
    SessionLocked,
    StorageUnavailable,
)
from agent_core.kernel.threads import run_in_thread
from agent_core.storage.adapters.paths import (
    DAMAGED_SUFFIX,
    EVENTS_SUFFIX,
    FILE_MODE,
    NEW_SUFFIX,
    OLD_SUFFIX,
    SUFFIX,
    attachments_folder,
    file_name,
    flush,
    flush_folder,
    slug,
    tasks_folder,
)
from agent_core.storage.adapters.session_file import SessionFile, blocks_of, unavailable
from agent_core.storage.port import (
    AttachmentBucket,
    OpenedSession,
    Recovery,
    SessionAttachments,
    SessionSummary,
    StoredSession,
    begins_session,
)
from agent_core.transcript.codec import encode_entry, encode_header
from agent_core.transcript.entries import (
    FORMAT_VERSION,
    AnyEntry,
    ColdEntry,
    Header,
    LineLocation,
    WholeEntry,
)

if TYPE_CHECKING:
    from agent_core.storage.adapters.attachments import Attachments
    from agent_core.storage.adapters.entry_collector import Cool, LineSpan
    from agent_core.storage.adapters.recovery import RecoveredFile, Tail


CLOSE_S = 10.0
"""How long closing waits for the disk before it goes on without it."""
LOADED_AT_ONCE = 256
"""How many bodies are read back before somebody who wants to write gets a turn."""
_log = logging.getLogger(__name__)


class JsonlLog:
    """One session file, opened for writing; made with the first words that are said."""

    def __init__(
        self,
        header: Header,
        *,
        location: Path,
        attachments: "Callable[[], Attachments]",
        file: SessionFile | None,
        places: "dict[EntryId, LineSpan] | None" = None,
    ) -> None:
        self._header = header
        self._location = location
        self._attachments = attachments
        self._file = file
        self._held: list[AnyEntry] = []
        self._places = {} if places is None else places
        """Where in the file each entry's line is."""
        self._is_closed = False
        self._turn = anyio.Lock(fast_acquire=True)
        # The first lock orders the callers; the second also holds when a caller was torn away from its thread.
        self._writing = Lock()

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._header

    @property
    def location(self) -> Path | None:
        """The file, which may not exist yet."""
        return self._location

    @property
    def attachments(self) -> SessionAttachments:
        """Where its attachments are stored."""
        return self._stored_beside

    @cached_property
    def _stored_beside(self) -> SessionAttachments:
        from agent_core.storage.adapters.attachments import (  # noqa: PLC0415 - at first use
            CountedAttachments,
        )

        return CountedAttachments(self._attachments, self._location)

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Write entries. Cancelled before it began, nothing is written; once begun it finishes."""
        async with self._turn:
            await run_in_thread(self._append, tuple(entries))

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Return what is to be held of entries that are in the file."""
        from agent_core.storage.adapters import bodies  # noqa: PLC0415 - at first use

        return bodies.cool(entries, self._places)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        """Read bodies back; others may write between them."""
        found: list[WholeEntry] = []
        for first in range(0, len(entries), LOADED_AT_ONCE):
            some = entries[first : first + LOADED_AT_ONCE]
            found.extend(await run_in_thread(self._load, some))
        return tuple(found)

    async def sync(self) -> None:
        """Make everything appended survive a power cut."""
        async with self._turn:
            await run_in_thread(self._sync)

    async def close(self) -> None:
        """Sync and let go of the lock."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            async with self._turn:
                await to_thread.run_sync(self._close, abandon_on_cancel=True)

    def _append(self, entries: tuple[AnyEntry, ...]) -> None:
        with self._writing:
            if self._is_closed:
                message = f"the session {self._header.id!r} was closed: open it again to write"
                raise SessionClosed(message)
            if self._file is not None:
                places = self._file.append([encode_entry(entry) + b"\n" for entry in entries])
                self._note(entries, places)
            elif begins_session(entries):
                first = (*self._held, *entries)
                lines = [encode_header(self._header), *map(encode_entry, first)]
                self._file = SessionFile.born(self._location, b"\n".join([*lines, b""]))
                self._note(first, _places_of(lines)[1:])
                self._held.clear()
            else:
                self._held.extend(entries)

    def _note(self, entries: Sequence[AnyEntry], places: Sequence[LineLocation]) -> None:
        for entry, place in zip(entries, places, strict=True):
            self._places[entry.id] = (place.offset, place.size)

    def _load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        from agent_core.storage.adapters import bodies  # noqa: PLC0415 - at first use

        with self._writing:
            if self._file is None or self._is_closed:
                message = f"the session {self._header.id!r} was closed: open it again to read"
                raise SessionClosed(message)
            try:
                return bodies.load(entries, read=self._file.read_at, path=self._location)
            except OSError as error:
                raise unavailable(self._location, "read", error) from error

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

    def __init__(
        self, folder: Path, clock: Clock, *, bucket: AttachmentBucket | None = None
    ) -> None:
        """Create it; nothing is made yet.

        Args:
            folder: Folder of the sessions.
            clock: Time.
            bucket: Where their attachments are stored; None: in a folder beside the sessions.
        """
        self._folder = folder
        self._clock = clock
        self._bucket = bucket

    @property
    def tasks(self) -> "JsonlStore":
        """Where the sessions of tasks are kept."""
        return JsonlStore(tasks_folder(self._folder), self._clock, bucket=self._bucket)

    async def create(self, header: Header) -> JsonlLog:
        """Begin a session; nothing is written yet.

        Raises:
            UsageError: The session's id cannot be part of a file name.
        """
        location = self._folder / slug(header.cwd) / file_name(header)
        return JsonlLog(header, location=location, attachments=self._attachments, file=None)

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing; a file of an older format is brought to today's."""
        return await run_in_thread(self._open, session)

    async def open_file(self, path: Path) -> OpenedSession:
        """Open a session file for writing, wherever it is; raises as `open`.

        Raises:
            SessionNotFound: There is no such file.
        """
        return await run_in_thread(self._open_file, path, SessionId(path.name))

    async def read(self, session: SessionId) -> StoredSession:
        """Read a session whoever writes it meanwhile."""
        return await to_thread.run_sync(self._stored, session, abandon_on_cancel=True)

    async def delete(self, session: SessionId) -> None:
        """Remove a session's file and those beside it."""
        from agent_core.storage.adapters import scan  # noqa: PLC0415 - at first use

        await run_in_thread(lambda: remove(scan.find(self._folder, session)))

    async def latest(self, cwd: str) -> SessionId | None:
        """Return the session of that folder with the newest last entry."""
        from agent_core.storage.adapters import scan  # noqa: PLC0415 - at first use

        return await to_thread.run_sync(scan.latest, self._folder, cwd, abandon_on_cancel=True)

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return the sessions that can be read, newest first."""
        from agent_core.storage.adapters import scan  # noqa: PLC0415 - at first use

        return await to_thread.run_sync(scan.summaries, self._folder, cwd, abandon_on_cancel=True)

    def _attachments(self) -> "Attachments":
        from agent_core.storage.adapters.attachments import (  # noqa: PLC0415 - at first use
            open_attachments,
        )

        return open_attachments(attachments_folder(self._folder), self._bucket)

    def _open(self, session: SessionId) -> OpenedSession:
        from agent_core.storage.adapters import scan  # noqa: PLC0415 - at first use

        return self._open_file(scan.find(self._folder, session), session)

    def _open_file(self, path: Path, session: SessionId) -> OpenedSession:
        try:
            file = SessionFile.opened(path)
        except SessionLocked as locked:
            raise SessionLocked(str(locked), session=session) from locked
        try:
            return self._read(file)
        except OSError as error:
            file.close()
            raise unavailable(file.path, "read", error) from error
        except BaseException:
            file.close()
            raise

    def _read(self, file: SessionFile) -> OpenedSession:
        from agent_core.storage.adapters import bodies  # noqa: PLC0415 - at first use
        from agent_core.storage.adapters.recovery import replaced_until  # noqa: PLC0415 - at first use
        from agent_core.transcript.cold_entries import cooled  # noqa: PLC0415 - at first use

        until = replaced_until(file.blocks())
        found = read = self._recovered(file.path, file.blocks(), cool=cooled, replaced_until=until)
        damaged = None
        if found.header.version > FORMAT_VERSION:
            message = (
                f"the session file {str(file.path)!r} is of version {found.header.version}, this program writes "
                f"version {FORMAT_VERSION}: update the program to go on in it; it can still be read and exported"
            )
            raise SessionDamaged(message)
        if found.is_old:
            _rewrite(file, found)
            found = self._recovered(file.path, file.blocks(), cool=cooled)
        else:
            damaged = _mend(file, found.tail)
        bodies.settle(found.by_id, found.places, read=file.read_at, path=file.path)
        return OpenedSession(
            log=JsonlLog(
                found.header,
                location=file.path,
                attachments=self._attachments,
                file=file,
                places=found.places,
            ),
            entries=found.stored,
            recovery=_recovery(read, torn_tail=damaged),
        )

    def _stored(self, session: SessionId) -> StoredSession:
        from agent_core.storage.adapters import scan  # noqa: PLC0415 - at first use
        from agent_core.storage.adapters.entry_collector import whole  # noqa: PLC0415 - at first use

        path = scan.find(self._folder, session)
        try:
            with path.open("rb", buffering=0) as file:
                # Not beyond what is there now: a line that somebody is just writing is none yet.
                blocks = blocks_of(file.fileno(), os.fstat(file.fileno()).st_size)
                found = self._recovered(path, blocks, cool=whole)
        except OSError as error:
            raise unavailable(path, "read", error) from error
        entries = (one for one in found.entries if not isinstance(one, ColdEntry))
        return StoredSession(
            header=found.header,
            entries=tuple(entries),
            recovery=_recovery(found, torn_tail=None),
            location=path,
        )

    def _recovered(
        self,
        path: Path,
        blocks: Iterable[bytes],
        *,
        cool: "Cool",
        replaced_until: int | None = None,
    ) -> "RecoveredFile":
        from agent_core.storage.adapters.lines import lines_of  # noqa: PLC0415 - at first use
        from agent_core.storage.adapters.recovery import recover_lines  # noqa: PLC0415 - at first use

        return recover_lines(
            lines_of(blocks),
            name=str(path),
            new_id=self._new_id,
            cool=cool,
            replaced_until=replaced_until,
        )

    def _new_id(self, taken: Container[object]) -> str:
        return new_entry_id(taken, at_ms=self._clock.now_ms())


def _recovery(found: "RecoveredFile", *, torn_tail: Path | None) -> Recovery:
    return Recovery(
        torn_tail=torn_tail,
        skipped_lines=found.skipped_lines,
        patched_lines=found.patched_lines,
        loose=found.loose,
    )


def _places_of(lines: Sequence[bytes]) -> tuple[LineLocation, ...]:
    """Return where lines are in a file that holds nothing else."""
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    return tuple(
        LineLocation(offset=end - len(line) - 1, size=len(line))
        for line, end in zip(lines, ends, strict=True)
    )


def _rewrite(file: SessionFile, found: "RecoveredFile") -> None:
    lines = [encode_header(found.header), *map(encode_entry, found.entries)]
    content = b"\n".join([*lines, b""])
    file.rewrite(content, old=file.path.with_name(file.path.name + OLD_SUFFIX))


def _mend(file: SessionFile, tail: "Tail | None") -> Path | None:
    """Repair the end of a file; return where a cut-off fragment was stored, if there was one.

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


def remove(path: Path) -> None:
    """Delete a session permanently.

    Raises:
        SessionLocked: A running process has it open for writing.
        StorageUnavailable: The file cannot be deleted; the files beside it may be deleted already.
    """
    file = SessionFile.opened(path)
    try:
        for beside in (DAMAGED_SUFFIX, OLD_SUFFIX, NEW_SUFFIX):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        path.with_name(path.name.removesuffix(SUFFIX) + EVENTS_SUFFIX).unlink(missing_ok=True)
        path.unlink()
        flush_folder(path.parent)
    except OSError as error:
        raise unavailable(path, "removed", error) from error
    finally:
        file.close()
