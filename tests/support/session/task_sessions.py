"""Sessions of tasks for tests: real sessions with a scripted model each, and a store that remembers every write."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace
from typing_extensions import override

from agent_core.assembly.builder import build_session
from agent_core.assembly.factory import limit_rights
from agent_core.assembly.session_parts import SessionDeps
from agent_core.events import EventSubscription
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ToolError
from agent_core.resources.agents import BUILT_IN, AgentDefinition
from agent_core.session import AgentSession
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.tools.task_port import TaskOpening
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.memory import MemoryLog, MemoryStore
from agent_core.storage.port import SessionStore, StoredSession
from agent_core.transcript.entries import AnyEntry, Header
from agent_core.workspace.git.worktrees.service import Worktrees
from tests.support.session.scripted_model import ScriptedModel
from tests.support.session.sessions import OneModel

Write = tuple[Header, bool, Sequence[AnyEntry]]
"""Header of the session, whether it is a task's, and what was written."""


class ScriptedTasks:
    """Opens the sessions of tasks with models that a test makes."""

    def __init__(
        self,
        store: SessionStore,
        model_of: Callable[[TaskOpening], ScriptedModel],
        *,
        agents: Sequence[AgentDefinition] = BUILT_IN,
    ) -> None:
        self.had_background = False
        self.deps: SessionDeps | None = None
        """Parts of the session that gives the tasks; set before the first one."""
        self.open_sessions = 0
        self.readers: list[EventSubscription] | None = None
        """Events of each session that is opened; None: nobody listens."""
        self._store = store
        self._model_of = model_of
        self._agents = agents

    def worktrees(self) -> Worktrees:
        message = "there are no worktrees here"
        raise ToolError(message)

    def agents(self) -> Sequence[AgentDefinition]:
        return self._agents

    async def read(self, session: SessionId) -> StoredSession:
        return await self._store.tasks.read(session)

    @asynccontextmanager
    async def open(self, opening: TaskOpening) -> AsyncGenerator[AgentSession, None]:
        assert self.deps is not None
        base, model = self.deps, self._model_of(opening)
        permissions = PermissionState(mode=base.workspace.permissions.mode)
        limit_rights(permissions, opening)
        deps = replace(
            base,
            opened=await self._opened(opening),
            workspace=WorkspaceContext(workspace=base.workspace.workspace, permissions=permissions),
            source=OneModel(model),
            model=model,
            active_tools=opening.tools,
            tasks=None,
            outer=opening.outer,
        )
        self.open_sessions += 1
        try:
            async with build_session(deps) as session:
                if self.readers is not None:
                    self.readers.append(session.subscribe())
                yield session
        finally:
            self.open_sessions -= 1

    async def _opened(self, opening: TaskOpening) -> OpenedSession:
        if not opening.is_new:
            return await self._store.tasks.open(opening.session)
        header = Header(id=opening.session, at_ms=0, cwd="/project")
        log = await self._store.tasks.create(header)
        return OpenedSession(log=log, entries=(), recovery=Recovery())


class _JournalLog(MemoryLog):
    """A log whose writes are remembered."""

    def __init__(self, log: MemoryLog, journal: list[Write], *, is_task: bool) -> None:
        super().__init__(log._kept)
        self.journal = journal
        self.is_task = is_task

    @override
    async def append(self, entries: Sequence[AnyEntry]) -> None:
        await super().append(entries)
        self.journal.append((self.header, self.is_task, tuple(entries)))


class JournalStore(MemoryStore):
    """Keeps sessions in memory, and the order of all writes, those of tasks included."""

    def __init__(self, journal: list[Write] | None = None, *, is_task: bool = False) -> None:
        super().__init__()
        self.journal: list[Write] = [] if journal is None else journal
        self._is_task = is_task
        self._task_store: JournalStore | None = None

    @property
    @override
    def tasks(self) -> "JournalStore":
        if self._task_store is None:
            self._task_store = JournalStore(self.journal, is_task=True)
        return self._task_store

    @override
    async def create(self, header: Header) -> MemoryLog:
        return _JournalLog(await super().create(header), self.journal, is_task=self._is_task)

    async def cut(self, writes: int) -> "JournalStore":
        """Return a store that holds what was written up to a moment, as after a kill."""
        store = JournalStore()
        logs: dict[SessionId, MemoryLog] = {}
        for header, is_task, entries in self.journal[:writes]:
            if header.id not in logs:
                place = store.tasks if is_task else store
                logs[header.id] = await MemoryStore.create(place, header)
            await logs[header.id].append(entries)
        for log in logs.values():
            await log.close()
        return store
