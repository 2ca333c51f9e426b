"""Commands that can lose commits: they are asked about, or the commits are still reachable afterwards."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.security.red_team.containment import run_uncontained, verdict
from tests.security.red_team.destructive import HISTORY, ROWS, Row
from tests.security.red_team.oracle import snapshot
from tests.security.red_team.world import World, world
from tests.support.harness.sizes import at_size

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full containment is for Linux"),
    pytest.mark.timeout(60),
]
LEAST_ROWS = 60
CONTROLS = ROWS[:: at_size(ci=4, campaign=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What the two repositories hold, as git and the disk say."""

    commits: Mapping[Path, frozenset[str]]
    files: Mapping[Path, str]
    """Kind, mode and digest of each entry of their folders."""


def test_the_table_is_large_enough_and_has_no_row_twice() -> None:
    commands = [row.command for row in ROWS]
    assert len(commands) >= LEAST_ROWS
    assert len(set(commands)) == len(commands)


@pytest.fixture(scope="module")
def _history() -> Iterator[World]:
    with world() as machine:
        _ = machine.as_user(HISTORY)
        shutil.copytree(machine.root.parent, machine.top / "kept", symlinks=True)
        yield machine


@pytest.fixture
def machine(_history: World) -> World:
    """Return a machine whose project is as it was: a hundred git commands are quicker copied than run."""
    _ = _history.as_user("rm -rf work; cp -a ../kept work", cwd=_history.home)
    return _history


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_no_commit_is_lost_without_a_question(machine: World, row: Row) -> None:
    command = _command(machine, row)
    asked = verdict(command, root=machine.root, level="full")
    assert row.verdict in (None, asked)
    if asked != "run":
        return
    before = _data(machine)
    with machine.session() as commands:
        ran = commands.run(command)
    assert _lost(machine, before, row) == [], ran


@pytest.mark.parametrize("row", CONTROLS, ids=lambda row: row.command)
def test_the_table_says_what_a_row_loses_without_containment(machine: World, row: Row) -> None:
    before = _data(machine)
    ran = run_uncontained(_command(machine, row), root=machine.root, env=machine.env)
    assert bool(_lost(machine, before, row)) == (row.loses != "nothing"), ran


def _command(machine: World, row: Row) -> str:
    return row.command.replace("$SECOND", str(machine.second))


def _places(machine: World) -> tuple[Path, Path]:
    return machine.root / ".git", machine.second / "remote.git"


def _data(machine: World) -> Data:
    inside = snapshot(machine).inside
    return Data(
        commits={place: _reachable(machine, place) for place in _places(machine)},
        files={
            path: f"{entry.kind} {entry.mode:o} {entry.digest}"
            for path, entry in inside.items()
            if any(path.is_relative_to(place) for place in _places(machine))
        },
    )


def _reachable(machine: World, place: Path) -> frozenset[str]:
    """Ask git, from outside, for all that a ref, a reflog or the stash reaches."""
    script = f"git --git-dir={place} rev-list --all --reflog 2>/dev/null || true"
    return frozenset(machine.as_user(script, cwd=machine.top).split())


def _lost(machine: World, before: Data, row: Row) -> list[str]:
    now = _data(machine)
    lost = [
        f"{one} is reachable no more in {place}"
        for place, commits in before.commits.items()
        for one in sorted(commits - now.commits[place])
    ]
    if row.loses == "data":
        lost += [
            f"changed: {path}" for path, what in before.files.items() if now.files.get(path) != what
        ]
    return lost
