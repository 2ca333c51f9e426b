"""Watching a real disk: folders that go away and come back, floods, systems without room, threads that end."""

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import anyio
import psutil
import pytest
import watchdog.observers

from agent_core.kernel.errors import AccessRefused, PathRefused
from agent_core.workspace import Changes
from agent_core.workspace.files.disk.change_buffer import MOST_PATHS
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.harness.shared import ROOT

SOON_S = 10.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "ws"
    (root / "dir").mkdir(parents=True)
    (root / "dir/a.txt").write_text("x")
    return root


@pytest.fixture
def files(root: Path) -> DiskFiles:
    return DiskFiles((root,), root.parent / "home")


def threads() -> set[str]:
    """Return the names of the threads, without those that anyio and the kernel keep for calls."""
    kept = ("AnyIO", "agent worker")
    return {one.name for one in threading.enumerate() if not any(name in one.name for name in kept)}


async def next_of(changes: Changes) -> frozenset[Path]:
    with anyio.fail_after(SOON_S):
        return await changes.next()


async def until(changes: Changes, path: Path) -> None:
    with anyio.fail_after(SOON_S):
        while path not in await changes.next():
            pass


async def test_a_file_replaced_by_a_rename_is_still_watched(files: DiskFiles, root: Path) -> None:
    path = root / "dir/a.txt"
    async with files.watch(path) as changes:
        for text in ("one", "two"):
            (root / "beside").write_text(text)
            (root / "beside").rename(path)
            assert await next_of(changes) == {path}


@pytest.mark.parametrize("name", ["dir", "dir/a.txt"])
async def test_what_goes_away_with_its_folder_is_told_and_watched_when_it_is_back(
    files: DiskFiles, root: Path, name: str
) -> None:
    async with files.watch(root / name) as changes:
        shutil.rmtree(root / "dir")
        await until(changes, root / name)
        (root / "dir").mkdir()
        await until(changes, root / name)
        (root / "dir/a.txt").write_text("again")
        await until(changes, root / "dir/a.txt")


async def test_a_folder_that_is_moved_away_is_told_and_another_one_is_followed(
    files: DiskFiles, root: Path
) -> None:
    async with files.watch(root / "dir") as changes:
        (root / "dir").rename(root / "elsewhere")
        (root / "dir").mkdir()
        await until(changes, root / "dir")
        (root / "elsewhere/a.txt").write_text("of no interest")
        (root / "dir/b.txt").write_text("x")
        assert await next_of(changes) == {root / "dir/b.txt"}


async def test_a_watched_root_that_is_deleted_is_told(files: DiskFiles, root: Path) -> None:
    async with files.watch(root) as changes:
        shutil.rmtree(root)
        await until(changes, root)
        (root / "dir").mkdir(parents=True)
        await until(changes, root)


async def test_what_is_deeper_is_not_watched(files: DiskFiles, root: Path) -> None:
    (root / "dir/sub").mkdir()
    async with files.watch(root / "dir") as changes:
        (root / "dir/sub/deep.txt").write_text("x")
        (root / "dir/b.txt").write_text("x")
        assert await next_of(changes) == {root / "dir/b.txt"}


async def test_folders_and_links_in_a_folder_are_told_too(files: DiskFiles, root: Path) -> None:
    async with files.watch(root / "dir") as changes:
        (root / "dir/sub").mkdir()
        (root / "dir/link").symlink_to("a.txt")
        (root / "dir/a.txt").rename(root / "dir/b.txt")
        told = await next_of(changes)
        assert told == {root / "dir" / name for name in ("sub", "link", "a.txt", "b.txt")}
        (root / "dir/b.txt").rename(root / "out.txt")
        assert await next_of(changes) == {root / "dir/b.txt"}
        (root / "dir/sub").rmdir()
        assert await next_of(changes) == {root / "dir/sub"}


async def test_a_flood_says_to_look_at_everything(files: DiskFiles, root: Path) -> None:
    folder = root / "dir"
    async with files.watch(folder) as changes:
        for n in range(3 * MOST_PATHS):
            (folder / f"f{n}").touch()
        told = await next_of(changes)
        while folder not in told:
            told = await next_of(changes)
        assert len(told) <= MOST_PATHS + 1


async def test_a_link_put_in_place_of_a_folder_is_not_watched(files, root: Path) -> None:
    (root / "link").symlink_to(root / "dir")
    with pytest.raises(PathRefused):
        async with files.watch(root / "link"):
            pass


async def test_no_thread_and_no_descriptor_is_left(files: DiskFiles, root: Path) -> None:
    async def use() -> None:
        async with files.watch(root / "dir"):
            pass
        with anyio.move_on_after(0.01):
            async with files.watch(root / "dir/a.txt") as changes:
                _ = await changes.next()

    await use()
    before = threads(), psutil.Process().num_fds()
    for _ in range(5):
        await use()
    assert (threads(), psutil.Process().num_fds()) == before


@pytest.mark.parametrize(
    "refusal",
    [
        ("__init__", errno.EMFILE, "max_user_instances"),
        ("start", errno.EMFILE, "max_user_instances"),
        ("schedule", errno.ENOSPC, "max_user_watches"),
        ("schedule", errno.EACCES, "Permission denied"),
    ],
    ids=str,
)
async def test_a_system_without_room_says_what_to_do(files, root, monkeypatch, refusal) -> None:
    step, code, advice = refusal

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(watchdog.observers.Observer, step, refuse)
    before = threads()
    with pytest.raises(AccessRefused, match=f"{root / 'dir'} cannot be watched.*{advice}"):
        async with files.watch(root / "dir"):
            pass
    assert threads() == before


def test_the_watching_library_is_loaded_only_when_it_is_needed(child_env: dict[str, str]) -> None:
    code = (
        "import sys, agent_core.workspace.files.disk.disk_files; print('watchdog' in sys.modules)"
    )
    argv = (sys.executable, "-c", code)
    done = subprocess.run(argv, cwd=ROOT, env=child_env, capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"
