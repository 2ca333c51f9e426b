"""A workspace inside another root, as a container or a far machine has it: its paths mean nothing on this one.

An example for those who write adapters: it implements the ports by mapping paths, both ways, and knows nothing
of the tools that will use it.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import (
    READ_LIMIT_BYTES,
    Changes,
    DirectoryEntry,
    FileBytes,
    FileReader,
    FileStat,
    FileText,
    FileWrite,
    OnResult,
    PathAccess,
    Process,
    Workspace,
    WriteResult,
)
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.paths import UNICODE_SPACES, meanings, refusal
from agent_core.workspace.files.write_sequence import write_one_by_one
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcesses


class Mount:
    """Where the workspace of the other root lies on this machine."""

    def __init__(self, inner: Path, outer: Path) -> None:
        """Take both names of one folder.

        Args:
            inner: As the model and the tools know it; need not exist here.
            outer: As this machine knows it: absolute and real.
        """
        self.inner = inner
        self.outer = outer

    def out(self, path: Path) -> Path:
        """Turn a path of the workspace into one of this machine.

        Raises:
            PathRefused: It is not in the workspace.
        """
        if not path.is_relative_to(self.inner):
            raise refusal(str(path), leads_to=path, roots=(self.inner,))
        return self.outer / path.relative_to(self.inner)

    def back(self, path: Path) -> Path:
        """Turn a path of this machine into one of the workspace."""
        return self.inner / path.relative_to(self.outer)

    def words(self, text: str) -> str:
        """Take this machine's paths out of what the model will read."""
        return text.replace(str(self.outer), str(self.inner))

    @contextmanager
    def telling(self) -> Generator[None]:
        """Let errors speak of the workspace's paths."""
        try:
            yield
        except WorkspaceError as error:
            raise type(error)(self.words(str(error))) from error


class RootedFiles:
    """Files below a path of another root."""

    def __init__(self, mount: Mount, home: Path) -> None:
        """Take where the files lie, and what `~` means in the other root."""
        self._mount = mount
        self._home = home
        self._disk = DiskFiles((mount.outer,), mount.outer)

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Find the path that a model means, in the other root."""
        with self._mount.telling():
            return self._mount.back(await self._disk.resolve(self._outer_words(path), access))

    async def stat(self, path: Path) -> FileStat:
        """Say what a path is."""
        with self._mount.telling():
            return replace(await self._disk.stat(self._mount.out(path)), path=path)

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Give what is in a folder."""
        with self._mount.telling():
            return await self._disk.list(self._mount.out(path))

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a whole file."""
        with self._mount.telling():
            found = await self._disk.read(self._mount.out(path), limit_bytes=limit_bytes)
            return replace(found, path=path)

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file to read it in pieces."""
        async with AsyncExitStack() as stack:
            with self._mount.telling():
                opening = self._disk.open(self._mount.out(path))
                reader = await stack.enter_async_context(opening)
            yield reader

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Give nothing: no editor knows the other root."""
        return await self._disk.buffers(folder)

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text, if what is there is still `base`."""
        with self._mount.telling():
            outer = self._mount.out(path)
            known = None if base is None else replace(base, path=outer)
            written = await self._disk.write(outer, text, base=known)
            note = None if written.note is None else self._mount.words(written.note)
            return replace(written, path=path, note=note)

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several texts, one after the other."""
        await write_one_by_one(self, writes, on_result=on_result)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if what is there is still `base`."""
        with self._mount.telling():
            outer = self._mount.out(path)
            await self._disk.delete(outer, base=replace(base, path=outer))

    async def move(self, source: Path, target: Path) -> None:
        """Give a file another name."""
        with self._mount.telling():
            await self._disk.move(self._mount.out(source), self._mount.out(target))

    @asynccontextmanager
    async def watch(self, path: Path) -> AsyncGenerator[Changes]:
        """Watch a file, or what is directly in a folder."""
        async with AsyncExitStack() as stack:
            with self._mount.telling():
                watching = self._disk.watch(self._mount.out(path))
                changes = await stack.enter_async_context(watching)
            yield _RootedChanges(changes, self._mount)

    def _outer_words(self, path: str) -> str:
        """Turn what a model wrote into what means the same here; relative words mean the same everywhere."""
        usual = UNICODE_SPACES.sub(" ", path).strip().removeprefix("@")
        is_absolute = usual.startswith("/") or usual.lower().startswith("file://")
        if not is_absolute and usual != "~" and not usual.startswith("~/"):
            return path
        meant = meanings(path, root=self._mount.inner, home=self._home)[-1]
        if not meant.is_relative_to(self._mount.inner):
            raise refusal(path, leads_to=meant, roots=(self._mount.inner,))
        return str(self._mount.out(meant))


class _RootedChanges:
    def __init__(self, changes: Changes, mount: Mount) -> None:
        self._changes = changes
        self._mount = mount

    async def next(self) -> frozenset[Path]:
        return frozenset(self._mount.back(path) for path in await self._changes.next())


class RootedProcesses:
    """Processes that start in the folder of this machine where the other root's lies."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self._processes = DiskProcesses()

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = frozenset(),
    ) -> Process:
        """Start a process."""
        with self._mount.telling():
            outer = self._mount.out(cwd)
            return await self._processes.start(argv, cwd=outer, env=env, stdin=stdin, needs=needs)

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


def rooted_workspace(inner: Path, outer: Path, *, env: Mapping[str, str]) -> Workspace:
    """Make a workspace that is known as `inner` and lies in `outer`."""
    mount = Mount(inner, outer)
    return Workspace(
        roots=(inner,),
        files=RootedFiles(mount, inner.parent / "home"),
        processes=RootedProcesses(mount),
        env=env,
    )
