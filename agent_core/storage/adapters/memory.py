"""Sessions that live as long as the process."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    SessionClosed,
    SessionLocked,
    SessionNotFound,
    StorageUnavailable,
)
from agent_core.storage.port import (
    OpenedSession,
    Recovery,
    SessionSummary,
    StoredSession,
    begins_session,
)
from agent_core.transcript.codec import entry_to_json
from agent_core.transcript.entries import AnyEntry, ColdEntry, Header, WholeEntry


class _Kept(Struct, kw_only=True):
    header: Header
    entries: list[WholeEntry] = msgspec.field(default_factory=list[WholeEntry])
    is_begun: bool = False
    is_open: bool = True


class MemoryLog:
    """A session in memory, opened for writing."""

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept
        self._is_closed = False

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._kept.header

    @property
    def location(self) -> Path | None:
        """None: there is no file."""
        return None

    @property
    def attachments(self) -> None:
        """None: a session in memory leaves no files."""
        return

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Keep entries."""
        if self._is_closed:
            message = f"the session {self._kept.header.id!r} was closed: open it again to write"
            raise SessionClosed(message)
        whole = [entry for entry in entries if not isinstance(entry, ColdEntry)]
        self._kept.entries.extend(whole)
        self._kept.is_begun = self._kept.is_begun or begins_session(entries)

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Return them as they are: there is no file for their bodies."""
        return tuple(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        """Return nothing for nothing: no entry of ours is without its body.

        Raises:
            StorageUnavailable: The entries are another log's.
        """
        if entries:
            message = f"the session in memory has no entry {entries[0].id!r} without a body"
            raise StorageUnavailable(message)
        return ()

    async def sync(self) -> None:
        """Do nothing: no power cut is survived."""

    async def close(self) -> None:
        """Close the log, so that the session can be opened again."""
        if not self._is_closed:
            self._is_closed = True
            self._kept.is_open = False


class MemoryStore:
    """Keeps sessions in memory; like a file, one that nothing was said in cannot be found."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, _Kept] = {}
        self._tasks: MemoryStore | None = None

    @property
    def tasks(self) -> "MemoryStore":
        """Where the sessions of tasks are kept."""
        self._tasks = self._tasks or MemoryStore()
        return self._tasks

    async def create(self, header: Header) -> MemoryLog:
        """Begin a session."""
        kept = _Kept(header=header)
        self._sessions[header.id] = kept
        return MemoryLog(kept)

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing."""
        kept = self._unlocked(session)
        kept.is_open = True
        return OpenedSession(log=MemoryLog(kept), entries=tuple(kept.entries), recovery=Recovery())

    async def read(self, session: SessionId) -> StoredSession:
        """Return a session as it is now."""
        kept = self._begun(session)
        return StoredSession(
            header=kept.header, entries=tuple(kept.entries), recovery=Recovery(), location=None
        )

    async def delete(self, session: SessionId) -> None:
        """Forget a session."""
        _ = self._unlocked(session)
        del self._sessions[session]

    async def latest(self, cwd: str) -> SessionId | None:
        """Return the session of that folder with the newest last entry."""
        found = await self.list(cwd)
        return found[0].session if found else None

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return the sessions, newest first."""
        found = [
            _summary(kept)
            for kept in self._sessions.values()
            if kept.is_begun and cwd in {None, kept.header.cwd}
        ]
        return tuple(sorted(found, key=lambda one: one.modified_ms, reverse=True))

    def _begun(self, session: SessionId) -> _Kept:
        kept = self._sessions.get(session)
        if kept is None or not kept.is_begun:
            message = f"there is no session {session!r}: list the sessions to see which there are"
            raise SessionNotFound(message)
        return kept

    def _unlocked(self, session: SessionId) -> _Kept:
        kept = self._begun(session)
        if kept.is_open:
            message = f"the session {session!r} is open already: close it there first"
            raise SessionLocked(message, session=session)
        return kept


def _summary(kept: _Kept) -> SessionSummary:
    from agent_core.storage.summary import SessionSummaryBuilder  # noqa: PLC0415 - at first use

    tally = SessionSummaryBuilder(kept.header)
    for entry in kept.entries:
        tally.take(entry_to_json(entry))
    return tally.summary(None)
