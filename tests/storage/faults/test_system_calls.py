"""What is asked of the system for a session, and in which order: one write for each entry, synced when it matters."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.storage.faults import writer
from tests.storage.faults.system_calls import SystemCall, traced
from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider
from tests.support.session.session_files import checked_entries, runs

pytestmark = [pytest.mark.timeout(120)]

LOCK = ".lock"


@pytest.fixture
def ground(tmp_path: Path, tiller_dirs: TillerDirs, child_env: dict[str, str]) -> Ground:
    root = tmp_path / "project"
    root.mkdir()
    return Ground(dirs=tiller_dirs, env=child_env, provider=LoopbackProvider(), root=root.resolve())


def _kind(path: Path, folder: Path) -> str:
    """Name what a call is about: the session, its lock, its folder, or another file."""
    if path.name.endswith(".jsonl"):
        return "session"
    if path.name.endswith(LOCK):
        return "lock"
    if path.suffix == "" and folder in (path, *path.parents):
        return "folder"
    return path.name


def _told(seen: tuple[SystemCall, ...], folder: Path) -> list[str]:
    """Give what changed or synced something, in order, without the lock."""
    wanted = {"write", "fsync", "ftruncate", "rename", "link", "unlink"}
    named = [(one.name, _kind(one.path, folder)) for one in seen if one.result >= 0]
    told = [f"{name} {kind}" for name, kind in named if name in wanted and kind != "lock"]
    assert {name for name, _ in named} <= wanted | {"open", "openat", "close", "mkdir"}, named
    return told


def test_a_session_is_written_by_these_calls_and_no_others(
    tmp_path: Path, child_env: dict[str, str]
) -> None:
    folder = tmp_path / "sessions"
    seen = traced(
        [sys.executable, "-P", str(writer.__file__), str(folder)],
        below=folder,
        log=tmp_path / "trace",
        env=child_env,
        cwd=tmp_path,
    ).calls
    assert [one for one in _told(seen, folder) if one != "fsync folder"] == [
        "write session",  # its birth: the header and what was there by then
        *["write session"] * 3,
        "fsync session",
        "write session",
        "fsync session",
        "fsync session",
        "write session",
        "fsync session",
    ]
    (path,) = folder.glob("*/*.jsonl")
    _one_write_for_each_line(seen, path, at_birth=4)
    assert max(one.result for one in seen) > writer.BIG_CHARS
    _folder_is_synced_once_after_birth(seen, path)


def test_a_run_is_written_entry_by_entry_and_synced_at_its_end(
    ground: Ground, tmp_path: Path
) -> None:
    with ground.provider:
        ground.configure()
        ground.file("notes.txt", "a note\n")
        ground.provider.script(
            [
                calls(("read", {"path": "notes.txt"}), ("bash", {"command": "echo ü"})),
                calls(("write", {"path": "made.txt", "content": "made\n"})),
                says("done, " * 50),
            ]
        )
        data = ground.dirs.data
        seen = traced(
            [*TILLER, "run", "do it"],
            below=data / "sessions",
            log=tmp_path / "trace",
            env=ground.env,
            cwd=ground.root,
        ).calls
    (path,) = ground.sessions()
    entries = checked_entries(path)
    lines = path.read_bytes().splitlines(keepends=True)
    at_birth = 1 + next(
        place for place, one in enumerate(entries, start=1) if one.get("customType") == "tiller.run"
    )
    assert [status for _, status in runs(entries)] == ["started", "completed"]
    _one_write_for_each_line(seen, path, at_birth=at_birth)
    _folder_is_synced_once_after_birth(seen, path)
    of_session = [one.name for one in seen if one.path == path and one.name in {"write", "fsync"}]
    assert len([name for name in of_session if name == "write"]) == len(lines) - at_birth + 1
    # The run's end is the last entry; after it everything is on the disk, and closing syncs once more at most.
    last = len(of_session) - 1 - of_session[::-1].index("write")
    assert 1 <= len(of_session[last + 1 :]) <= 2
    assert set(of_session[last + 1 :]) == {"fsync"}
    counted = Counter(of_session)
    print(f"{len(entries)} entries: {counted['write']} writes, {counted['fsync']} syncs")
    changed = {one.path for one in seen if one.makes or one.writes}
    assert {one.name.removeprefix(path.name) for one in changed} == {"", LOCK}


def test_the_record_of_a_power_cut_has_every_call_that_changes_the_disk(
    tmp_path: Path, child_env: dict[str, str]
) -> None:
    folder = tmp_path / "sessions"
    seen = traced(
        [sys.executable, "-m", "tests.storage.faults.recorded_disk", "whole_life", str(folder)],
        below=tmp_path,
        log=tmp_path / "trace",
        env=child_env,
        cwd=Path(__file__).parents[3],
    )
    changing = {"write", "fsync", "ftruncate", "mkdir", "unlink", "link", "rename"}
    asked = [one.name for one in seen.calls if one.name in changing and one.result >= 0]
    recorded = [json.loads(line)["call"] for line in seen.out.splitlines()]
    assert [name for name in recorded if name in changing] == asked
    assert asked.count("fsync") > 3


def _one_write_for_each_line(seen: tuple[SystemCall, ...], path: Path, *, at_birth: int) -> None:
    """Hold the bytes of every write against the lines of the file: the first ones together, then one by one."""
    written = [one.result for one in seen if one.name == "write" and one.path == path]
    sizes = [len(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert written == [sum(sizes[:at_birth]), *sizes[at_birth:]]


def _folder_is_synced_once_after_birth(seen: tuple[SystemCall, ...], path: Path) -> None:
    home = [place for place, one in enumerate(seen) if one.path == path.parent]
    synced = [place for place in home if seen[place].name == "fsync"]
    names = [place for place, one in enumerate(seen) if one.path == path]
    made = [place for place in names if seen[place].makes]
    first_sync = next(place for place in names if seen[place].name == "fsync")
    assert len(made) == 1
    of_this_life = [place for place in synced if place < _reopened(seen, path)]
    assert len(of_this_life) == 1
    assert made[0] < first_sync < of_this_life[0]


def _reopened(seen: tuple[SystemCall, ...], path: Path) -> int:
    """Say where another life of the session begins; at the end when there is none."""
    opened = [
        place for place, one in enumerate(seen) if one.path == path and one.writes and not one.makes
    ]
    return opened[0] if opened else len(seen)
