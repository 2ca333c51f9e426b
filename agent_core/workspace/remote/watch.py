"""Changes of a watched path on the other side, from the listings that a script sends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace.files.disk.change_buffer import PathChangeBuffer
from agent_core.workspace.port import Changes
from agent_core.workspace.remote.transport import RemoteScript


class _RemoteChanges:
    """Changes until the connection is lost, which is reported to whoever waits."""

    def __init__(self, path: Path) -> None:
        self.buffer = PathChangeBuffer(path)
        self.failure: WorkspaceError | None = None

    async def next(self) -> frozenset[Path]:
        """Wait for a change.

        Raises:
            WorkspaceUnreachable: The connection was lost.
        """
        changed = await self.buffer.next()
        if self.failure is not None:
            raise self.failure
        return changed


@asynccontextmanager
async def watching(running: RemoteScript, path: Path, *, folder: Path) -> AsyncGenerator[Changes]:
    """Collect changes while the context is entered.

    Args:
        running: The script that lists the folder.
        path: The watched file or folder.
        folder: The folder that is listed.
    """
    changes = _RemoteChanges(path)

    async def follow() -> None:
        rest = b""
        while data := await running.read_forever():
            *whole, rest = (rest + data).split(b"\0")
            rest = b"\0".join((*whole[len(whole) // 2 * 2 :], rest))
            for before, after in zip(whole[::2], whole[1::2], strict=False):
                for name in _changed(before, after):
                    if path in {folder, folder / name}:
                        changes.buffer.put(folder / name)
        changes.failure = await running.lost()
        changes.buffer.put(path)

    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        try:
            yield changes
        except Exception as error:  # noqa: BLE001 - raised again, not wrapped by the group
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _changed(before: bytes, after: bytes) -> set[str]:
    """Return the names of the entries that differ."""
    lines = set(before.splitlines()) ^ set(after.splitlines())
    names = (line.partition(b" ./")[2] for line in lines)
    return {name.decode("utf-8", "surrogateescape") for name in names if name}
