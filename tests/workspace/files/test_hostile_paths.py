"""No path of the hostile corpus gets out of the workspace, whatever is done with it."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.workspace.files.hostile import (
    hostile_cases,
    make_fixture,
    outside_of_workspace,
)

Use = Callable[[DiskFiles, str], Awaitable[object]]


async def _list(files: DiskFiles, words: str) -> None:
    _ = await files.list(await files.resolve(words, "read"))


async def _open(files: DiskFiles, words: str) -> None:
    async with files.open(await files.resolve(words, "read")) as reader:
        _ = await reader.read(1)


async def _watch(files: DiskFiles, words: str) -> None:
    async with files.watch(await files.resolve(words, "read")):
        pass


async def _delete(files: DiskFiles, words: str) -> None:
    path = await files.resolve(words, "write")
    await files.delete(path, base=await files.read(path))


async def _move_away(files: DiskFiles, words: str) -> None:
    target = await files.resolve("moved away", "write")
    await files.move(await files.resolve(words, "write"), target)
    await files.delete(target, base=await files.read(target))


async def _move_there(files: DiskFiles, words: str) -> None:
    source = await files.resolve("to be moved", "write")
    with suppress(WorkspaceError):
        _ = await files.write(source, "x", base=None)
    await files.move(source, await files.resolve(words, "write"))


USES: dict[str, Use] = {
    "list": _list,
    "open": _open,
    "watch": _watch,
    "delete": _delete,
    "move away": _move_away,
    "move there": _move_there,
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = Path(os.path.realpath(tmp_path))
    (base / "ws").mkdir()
    make_fixture(base)
    return base


@pytest.mark.parametrize("use", USES)
async def test_no_path_of_the_corpus_gets_out(base: Path, use: str) -> None:
    files = DiskFiles((base / "ws",), base / "home")
    outside = outside_of_workspace(base)
    used: dict[str, Path] = {}
    for case in hostile_cases():
        with anyio.fail_after(5), suppress(WorkspaceError):
            words = case["path"].replace("{B}", str(base))
            path = await files.resolve(words, "read")
            _ = await USES[use](files, words)
            used[case["id"]] = path
        assert outside_of_workspace(base) == outside, case
    assert used
    assert {case for case, path in used.items() if not _is_inside(path, base / "ws")} == set()


def _is_inside(path: Path, root: Path) -> bool:
    """Tell it as the system does, not as the code under test does."""
    real = os.path.realpath(path)
    return real == str(root) or real.startswith(f"{root}/")
