"""The port of session storage: where the lines of a session live."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_core.kernel import SessionId
from agent_core.transcript.entries import AnyEntry, Header


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A stored session, as far as a list shows it."""

    session: SessionId
    location: Path | None
    cwd: str
    created_ms: int
    modified_ms: int
    """Time of the newest last entry."""
    messages: int
    title: str | None
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What opening a damaged file did; empty when it was whole."""

    torn_tail: Path | None = None
    """Where the cut-off fragment of an unfinished last line was kept."""
    skipped_lines: tuple[int, ...] = ()
    """Line numbers (from 1) in the middle that are no entries; they hide only themselves."""


class SessionLog(Protocol):
    """One session, opened for writing by us alone.

    Nothing is on disk before the first user message: what is appended earlier is held back and written with it.
    """

    @property
    def header(self) -> Header:
        """The session's header."""
        ...

    @property
    def location(self) -> Path | None:
        """The file; None in memory. It may not exist yet."""
        ...

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Write entries, each whole with one write, in order; when it returns they are in the file.

        Raises:
            StorageUnavailable: None of these entries is in the file (a partly written one was taken back);
                earlier ones are. The same entries may be appended again later.
        """
        ...

    async def sync(self) -> None:
        """Make everything appended survive a power cut.

        Raises:
            StorageUnavailable: It cannot be said to.
        """
        ...

    async def close(self) -> None:
        """Sync and let go of the lock. Idempotent; never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session read from where it is stored."""

    log: SessionLog
    entries: tuple[AnyEntry, ...]
    recovery: Recovery


class SessionStore(Protocol):
    """Where sessions are kept."""

    async def create(self, header: Header) -> SessionLog:
        """Begin a session; nothing is written yet."""
        ...

    async def open(self, session: SessionId) -> Opened:
        """Open a session for writing, taking its lock and cutting a torn tail.

        Raises:
            SessionNotFound: No such session.
            SessionLocked: Another living process has it.
            SessionDamaged: It is no session file.
        """
        ...

    async def latest(self, cwd: str) -> SessionId | None:
        """Give the session of that folder with the newest last entry, if there is one."""
        ...

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Give stored sessions, newest first; of all folders when none is named."""
        ...
