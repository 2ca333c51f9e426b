"""The session of a job: of one name, so that each worker that has the job continues it."""

from msgspec.structs import replace

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionNotFound
from agent_core.storage import OpenedSession, SessionStore
from agent_core.storage.port import SessionLog, SessionSummary, StoredSession
from agent_core.transcript.entries import Header


class JobSessionStore:
    """A store whose new sessions have the name of the job's."""

    def __init__(self, store: SessionStore, name: str) -> None:
        """Wrap a store."""
        self._store = store
        self._name = SessionId(name)

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
        return await self._store.create(replace(header, id=self._name))

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing."""
        return await self._store.open(session)

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
