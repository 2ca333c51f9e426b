"""The project that a folder belongs to, and the projects in which memory is on."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel.json import JsonObject, as_object
from agent_core.kernel.values import Value
from agent_core.memory.values import MemoryScope
from agent_core.resources.trust.workspace_trust import DecisionFile
from agent_core.workspace.git.client import find_root, open_repository, scratch_folder
from agent_core.workspace.git.repository import GitRepository, RepositoryUnusable, find_repository

KEY_CHARS: Final = 24
UNREADABLE: Final = "memory is off in every project"
_SCP: Final = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^@/]*@)?([^/:]*)(?::\d+)?/(.*)", re.IGNORECASE)


class MemoryProject(Value, frozen=True, kw_only=True):
    """A project: all clones and worktrees of one repository."""

    key: str
    name: str
    """The address of its repository without scheme and user; else its folder."""

    @property
    def scope(self) -> MemoryScope:
        """The scope of its entries."""
        return MemoryScope(self.key)


class MemoryProjects:
    """The projects of a user."""

    def __init__(self, folder: Path, *, env: Mapping[str, str]) -> None:
        path = folder / "projects.json"
        self._projects = DecisionFile(path, section="projects", else_=UNREADABLE)
        self._repositories = DecisionFile(path, section="repositories", else_=UNREADABLE)
        self._env = env

    async def of(self, folder: Path) -> MemoryProject:
        """Return the project of a folder.

        It is named by the address of its repository and by its first commit, so clones and worktrees share it. Without
        an address, without a commit and in a shallow clone it is named by the place of the repository, and outside of
        one by the folder.

        Raises:
            ConfigError: The file of projects cannot be read.
        """
        try:
            top = await find_root(folder, self._env)
            repository = await anyio.to_thread.run_sync(find_repository, top, self._env)
        except RepositoryUnusable:
            place = await anyio.to_thread.run_sync(folder.resolve)
            return _project(str(place), name=str(place))
        remote = _remote(repository.values)
        if not remote:
            return _project(str(repository.common_dir), name=str(repository.root))
        cached = as_object((await self._cached()).get(str(repository.common_dir)))
        first = cached.get("first") if cached.get("remote") == remote else None
        if not isinstance(first, str):
            first = await self._first_commit(repository)
            if first is None:
                return _project(str(repository.common_dir), name=remote)
            entry = {"remote": remote, "first": first}
            place = str(repository.common_dir)
            await anyio.to_thread.run_sync(
                lambda: self._repositories.change(lambda old: {**old, place: entry})
            )
        return _project(remote, first, name=remote)

    async def is_on(self, project: MemoryProject) -> bool:
        """Return whether memory is on in a project.

        Raises:
            ConfigError: The file of projects cannot be read.
        """
        entries = await anyio.to_thread.run_sync(self._projects.entries)
        return as_object(entries.get(project.key)).get("on") is True

    async def switch(self, project: MemoryProject, *, on: bool) -> None:
        """Switch memory on or off in a project; entries stay.

        Raises:
            ConfigError: The file of projects cannot be read or written.
        """
        entry = {"on": on, "name": project.name}
        await anyio.to_thread.run_sync(
            lambda: self._projects.change(lambda old: {**old, project.key: entry})
        )

    async def _cached(self) -> JsonObject:
        return await anyio.to_thread.run_sync(self._repositories.entries)

    async def _first_commit(self, repository: GitRepository) -> str | None:
        """Return the first commit of the branch; None: there is none, or the clone may lack it."""
        if await anyio.Path(repository.common_dir / "shallow").exists():
            return None
        async with scratch_folder() as scratch:
            git = await open_repository(repository, env=self._env, scratch=scratch)
            answer = await git.ask("rev-list", "--max-parents=0", "--first-parent", "HEAD")
        lines = answer.output.decode("ascii", "replace").split()
        return lines[-1] if lines and not answer.code else None


def repository_name(url: str) -> str:
    """Return the address of a repository without scheme, user, port and `.git`: the same for SSH and HTTPS."""
    match = _URL.fullmatch(url.strip()) or _SCP.fullmatch(url.strip())
    if match is None:
        return url.strip()
    path = match[2].strip("/").removesuffix(".git")
    return f"{match[1].lower()}/{path}"


def _remote(values: Mapping[str, str]) -> str:
    urls = {name: url for name, url in values.items() if re.fullmatch(r"remote\..+\.url", name)}
    url = urls.get("remote.origin.url") or next((urls[name] for name in sorted(urls)), "")
    return repository_name(url)


def _project(*parts: str, name: str) -> MemoryProject:
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return MemoryProject(key=digest[:KEY_CHARS], name=name)
