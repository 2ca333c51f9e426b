"""Memory of one folder: the entries of its project and of the user, and whether they are used there."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import anyio.to_thread

from agent_core.kernel import Clock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.memory.index import MemoryHit, MemoryIndex, merged
from agent_core.memory.project import MemoryProject, MemoryProjects
from agent_core.memory.store import MemoryFileStore
from agent_core.memory.values import USER, MemoryDraft, MemoryEntry, MemoryScope
from agent_core.resources.load_result import LoadProblem

T = TypeVar("T")
CONSOLIDATION: Final = "consolidation.json"
OFF: Final = "memory is off in this project; `tiller memory on` switches it on"


class FolderMemory:
    """The memory as a folder sees it."""

    def __init__(
        self, project: MemoryProject, *, store: MemoryFileStore, projects: MemoryProjects
    ) -> None:
        self.project = project
        self.store = store
        self._projects = projects
        self.scopes: Sequence[MemoryScope] = (project.scope, USER)
        """Scopes whose entries are used in the folder."""
        self._indices = [
            MemoryIndex(scope, path=store.path(scope), read=store.read_now) for scope in self.scopes
        ]

    @property
    def consolidation(self) -> Path:
        """The file of the project's consolidation, which need not exist."""
        return self.store.path(self.project.scope).with_name(CONSOLIDATION)

    async def is_on(self) -> bool:
        """Return whether memory is on in the project.

        Raises:
            ConfigError: The file of projects cannot be read.
        """
        return await self._projects.is_on(self.project)

    async def switch(self, *, on: bool) -> None:
        """Switch memory on or off in the project; entries stay.

        Raises:
            ConfigError: The file of projects cannot be read or written.
        """
        await self._projects.switch(self.project, on=on)

    async def remember(self, draft: MemoryDraft, scope: MemoryScope) -> MemoryEntry:
        """Store an entry that a person wrote.

        Raises:
            UsageError: Memory is off in the project, or the text cannot be stored.
            ConfigError: A file cannot be read or written.
        """
        if not await self.is_on():
            raise UsageError(OFF)
        (entry,) = await self.store.add(scope, [draft])
        return entry

    async def search(self, query: str, *, limit: int) -> list[MemoryEntry]:
        """Return the entries that fit a query best.

        Raises:
            ConfigError, StorageUnavailable: A file or its index cannot be read.
        """

        def search() -> list[MemoryHit]:
            today = self.store.today
            hits = [one.search(query, limit=limit, today=today) for one in self._indices]
            return merged(hits, limit=limit)

        return [hit.entry for hit in await anyio.to_thread.run_sync(search)]

    async def find(self, ids: Sequence[str]) -> list[MemoryEntry]:
        """Return those of some entries that are there and have not expired, in this order.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """
        listed = await self._of_each(lambda index: index.find(ids, today=self.store.today))
        by_id = {entry.id: entry for entry in reversed(listed)}
        return [by_id[one] for one in dict.fromkeys(ids) if one in by_id]

    async def best(self, *, limit: int) -> list[MemoryEntry]:
        """Return the most reliable and newest entries, those of the project first.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """
        return await self._of_each(lambda index: index.best(limit=limit, today=self.store.today))

    async def problems(self) -> list[LoadProblem]:
        """Return the parts of the files that cannot be read.

        Raises:
            ConfigError, StorageUnavailable: As `search`.
        """
        return await self._of_each(MemoryIndex.problems)

    async def _of_each(self, ask: Callable[[MemoryIndex], Sequence[T]]) -> list[T]:
        def all_() -> list[T]:
            return [one for index in self._indices for one in ask(index)]

        return await anyio.to_thread.run_sync(all_)


async def open_memory(
    folder: Path, workspace: Path, *, env: Mapping[str, str], clock: Clock, redactor: Redactor
) -> FolderMemory:
    """Open the memory for a workspace.

    Args:
        folder: The folder of the memory.
        workspace: A folder of the project.
        env: The environment of the user, for git.
        clock: Time.
        redactor: Removes secrets from what is written.

    Raises:
        ConfigError: The file of projects cannot be read.
    """
    projects = MemoryProjects(folder, env=env)
    project = await projects.of(workspace)
    store = MemoryFileStore(folder, env=env, clock=clock, redactor=redactor)
    return FolderMemory(project, store=store, projects=projects)


async def open_if_on(
    folder: Path, workspace: Path, *, env: Mapping[str, str], clock: Clock, redactor: Redactor
) -> FolderMemory | None:
    """Open the memory as `open_memory` does; None: it is off in the project.

    Raises:
        ConfigError: The file of projects cannot be read.
    """
    memory = await open_memory(folder, workspace, env=env, clock=clock, redactor=redactor)
    return memory if await memory.is_on() else None
