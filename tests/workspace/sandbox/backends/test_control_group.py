"""The control group for what root starts: made where it can be, with its limits, and nothing otherwise."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from agent_core.workspace.sandbox.backends import keeper as module
from agent_core.workspace.sandbox.backends.keeper import ControlGroup

MEMORY_BYTES = 4_000
ARGV = ("echo", "ran", "as it is")


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders in the place of the kernel's, of which only the older kind is there."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "SECOND", tmp_path / "second")
    monkeypatch.setattr(module, "FIRST", tmp_path / "first")
    (tmp_path / "first").mkdir()
    return tmp_path


def newer(top: Path) -> None:
    (top / "second").mkdir()
    (top / "second" / "cgroup.controllers").touch()


def group() -> ControlGroup:
    return ControlGroup(processes=77, memory_bytes=MEMORY_BYTES)


def made(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir())


def limits(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir()}


def test_of_the_older_kind_the_thread_enters_once_and_commands_stay_as_they_are(top: Path) -> None:
    one = group()
    assert one.entered(ARGV) == ARGV
    (folder,) = made(top / "first")
    assert folder.name.startswith("tiller-")
    assert limits(folder) == {"pids.max": "77"}
    one.enter()
    assert (folder / "tasks").read_text() == str(threading.get_native_id())
    (folder / "tasks").write_text("read by the kernel")
    one.enter()
    assert (folder / "tasks").read_text() == "read by the kernel"
    assert made(top / "first") == [folder]


def test_a_thread_that_could_not_enter_tries_again(top: Path) -> None:
    one = group()
    _ = one.entered(ARGV)
    (folder,) = made(top / "first")
    (folder / "tasks").mkdir()
    one.enter()
    (folder / "tasks").rmdir()
    one.enter()
    assert (folder / "tasks").read_text() == str(threading.get_native_id())


def test_of_the_newer_kind_the_command_enters_itself(top: Path) -> None:
    newer(top)
    one = group()
    argv = one.entered(ARGV)
    (folder,) = made(top / "second")
    assert made(top / "first") == []
    assert limits(folder) == {"pids.max": "77", "memory.max": "3000"}
    one.enter()
    assert not (folder / "tasks").exists()
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        said = process.communicate()[0]
    assert said == b"ran as it is\n"
    assert (folder / "cgroup.procs").read_text() == f"{process.pid}\n"


def test_memory_that_nobody_knows_is_not_limited(top: Path) -> None:
    newer(top)
    _ = ControlGroup(processes=77, memory_bytes=None).entered(ARGV)
    assert [limits(one) for one in made(top / "second")] == [{"pids.max": "77"}]


def test_only_root_makes_one(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    newer(top)
    one = group()
    one.enter()
    assert one.entered(ARGV) == ARGV
    assert made(top / "first") == made(top / "second") == []


def test_where_none_can_be_made_things_go_on_without(top: Path) -> None:
    (top / "first").rmdir()
    one = group()
    one.enter()
    assert one.entered(ARGV) == ARGV
    one.close()


def test_one_without_its_limits_is_taken_away_again(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: object) -> NoReturn:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "write_text", refuse)
    assert group().entered(ARGV) == ARGV
    assert made(top / "first") == []


def test_at_the_end_the_threads_leave_and_the_group_goes(top: Path) -> None:
    one = group()
    one.enter()
    (folder,) = made(top / "first")
    for name in limits(folder):
        (folder / name).unlink()  # the kernel's own files do not keep a folder
    one.close()
    assert (top / "first" / "tasks").read_text() == str(threading.get_native_id())
    assert made(top / "first") == []
    one.close()
    one.enter()
    assert len(made(top / "first")) == 1


def test_the_end_of_what_never_began_does_nothing(top: Path) -> None:
    group().close()
    assert list((top / "first").iterdir()) == []


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def own_name() -> str:
    _ = group().entered(ARGV)
    (folder,) = made(module.FIRST)
    for name in list(folder.iterdir()):
        name.unlink()
    folder.rmdir()
    return folder.name


def left(top: Path, *names: str) -> list[str]:
    """Make empty groups, begin with one of ours, and give which of them are left."""
    for name in names:
        (top / "first" / name).mkdir()
    _ = group().entered(ARGV)
    return sorted(one.name for one in made(top / "first") if one.name in names)


def test_a_group_that_a_killed_server_left_is_removed(top: Path, ended: int) -> None:
    tiller, space, _, started, token = own_name().split("-")
    names = [
        f"{tiller}-{space}-{ended}-{started}-{token}",
        f"{tiller}-{space}-{os.getpid()}-{int(started) - 1}-{token}",
    ]
    assert left(top, *names) == []


def test_an_empty_group_of_a_server_that_lives_stays(top: Path, ended: int) -> None:
    tiller, space, pid, started, token = own_name().split("-")
    names = [
        f"{tiller}-{space}-{pid}-{started}-{token}",
        # Numbers of processes mean nothing in another process namespace.
        f"{tiller}-{int(space) + 1}-{ended}-{started}-{token}",
        # Whose they are nobody knows.
        "tiller-0123456789ab",
        f"{tiller}-{space}-{ended}-x-{token}",
        f"other-{space}-{ended}-{started}-{token}",
    ]
    assert left(top, *names) == sorted(names)


def test_a_group_in_which_something_runs_stays(top: Path, ended: int) -> None:
    tiller, space, _, started, token = own_name().split("-")
    name = f"{tiller}-{space}-{ended}-{started}-{token}"
    (top / "first" / name / "inner").mkdir(parents=True)
    _ = group().entered(ARGV)
    assert (top / "first" / name / "inner").is_dir()


def test_the_group_of_a_server_that_was_killed_is_removed_by_the_next_one(top: Path) -> None:
    code = (
        "import os, sys, pathlib\n"
        "from agent_core.workspace.sandbox.backends import keeper as module\n"
        "module.FIRST, module.SECOND = map(pathlib.Path, sys.argv[1:])\n"
        "module.ControlGroup(processes=1, memory_bytes=None).entered(('true',))\n"
        "print('made', flush=True)\n"
        "sys.stdin.read()\n"
    )
    argv = [sys.executable, "-c", code, str(top / "first"), str(top / "second")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"made\n"
        (folder,) = made(top / "first")
        (folder / "pids.max").unlink()  # In the kernel's own folders such files do not count.
        _ = group().entered(ARGV)
        assert folder in made(top / "first")
        server.kill()
        server.wait()
        _ = group().entered(ARGV)
        assert folder not in made(top / "first")


@pytest.mark.skipif(
    not os.access("/sys/fs/cgroup/pids/tasks", os.W_OK), reason="needs root and a control group"
)
def test_the_kernel_lets_an_empty_group_of_an_ended_server_be_removed(
    monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    monkeypatch.setattr(module, "FIRST", Path("/sys/fs/cgroup/pids"))
    before = set(made(module.FIRST))
    first = group()
    _ = first.entered(ARGV)
    ours = [one for one in made(module.FIRST) if f"-{os.getpid()}-" in one.name]
    (mine,) = set(ours) - before
    tiller, space, _, started, token = mine.name.split("-")
    abandoned = mine.with_name(f"{tiller}-{space}-{ended}-{started}-{token}")
    abandoned.mkdir()
    second = group()
    _ = second.entered(ARGV)
    try:
        assert mine.is_dir()
        assert not abandoned.exists()
    finally:
        first.close()
        second.close()
