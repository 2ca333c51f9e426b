"""The session of a job: of one name, so that each worker that has the job continues it."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionNotFound
from agent_core.storage import OpenedSession, SessionStore
from agent_core.storage.port import (
    SessionAttachments,
    SessionLog,
    SessionSummary,
    StoredSession,
)
from agent_core.transcript.entries import AnyEntry, ColdEntry, Header, WholeEntry

AppendHook = Callable[[Sequence[AnyEntry]], Awaitable[None]]


class JobSessionStore:
    """A store whose new sessions have the name of the job's."""

    def __init__(self, store: SessionStore, name: str) -> None:
        """Wrap a store."""
        self._store = store
        self._name = SessionId(name)
        self.before_append: AppendHook | None = None
        """Called before each append of a session that is opened from then on."""

    @property
    def tasks(self) -> SessionStore:
        """Where the sessions of tasks are kept."""
        return self._store.tasks

    async def choice(self) -> str:
        """Return what a request names: the session if there is one, else `new`."""
        try:
            _ = await self._store.read(self._name)
        except SessionNotFound:
            return "new"
        return self._name

    async def create(self, header: Header) -> SessionLog:
        """Begin the session of the job."""
        return self._hooked(await self._store.create(replace(header, id=self._name)))

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing."""
        opened = await self._store.open(session)
        opened.log = self._hooked(opened.log)
        return opened

    async def read(self, session: SessionId) -> StoredSession:
        """Read a session."""
        return await self._store.read(session)

    async def delete(self, session: SessionId) -> None:
        """Remove a session."""
        await self._store.delete(session)

    async def latest(self, cwd: str) -> SessionId | None:
        """Return the newest session of a folder."""
        return await self._store.latest(cwd)

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return the stored sessions."""
        return await self._store.list(cwd)

    def _hooked(self, log: SessionLog) -> SessionLog:
        return log if self.before_append is None else HookedLog(log, self.before_append)


class HookedLog:
    """A log that calls a hook before each append; an error of the hook is one of the append."""

    def __init__(self, log: SessionLog, before_append: AppendHook) -> None:
        """Wrap a log."""
        self._log = log
        self._before_append = before_append

    @property
    def header(self) -> Header:
        """The session's header."""
        return self._log.header

    @property
    def location(self) -> Path | None:
        """The file of the log; None: there is none."""
        return self._log.location

    @property
    def attachments(self) -> SessionAttachments | None:
        """Where the attachments are; None: the entries hold them."""
        return self._log.attachments

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Call the hook, then write the entries."""
        await self._before_append(entries)
        await self._log.append(entries)

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Return the entries as they are held."""
        return self._log.cool(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        """Read the bodies of entries back."""
        return await self._log.load(entries)

    async def sync(self) -> None:
        """Make what was appended survive a power cut."""
        await self._log.sync()

    async def close(self) -> None:
        """Close the log."""
        await self._log.close()
