"""The loops of tests: who runs where follows from the table, and what costs more than the table says is named."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.clients.server import SERVER, TILLER
from tests.support.harness import fork_server
from tests.support.harness.isolation import TillerDirs
from tests.support.harness.loops import Costs, Durations, function_of, seconds_alone
from tests.support.harness.shared import ROOT
from tests.support.workspace.processes import descendants

SMOKE = "tests/e2e/test_smoke.py"
EDITORS = "tests/e2e/editors/test_real_editors_neovim.py"
FIRST_USE = "tests/e2e/testkit/first_use.py"


def collected(loop: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--loop", loop, SMOKE, EDITORS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return {line for line in ran.stdout.splitlines() if "::" in line}


@pytest.mark.timeout(120)
def test_every_test_is_in_one_of_the_two_halves_and_quick_starts_nothing() -> None:
    test, rest, full, quick = map(collected, ("test", "rest", "full", "quick"))
    assert not test & rest
    assert test | rest == full
    assert {line.partition("::")[0] for line in test} == {SMOKE}
    assert {line.partition("::")[0] for line in rest} == {EDITORS}
    assert quick == {f"{SMOKE}::test_every_command_is_started_here"}


def report(node_id: str, took: float, *, processes: int = 0) -> pytest.TestReport:
    return pytest.TestReport(
        node_id,
        (node_id.partition("::")[0], 0, node_id),
        keywords={},
        outcome="passed",
        longrepr=None,
        when="call",
        duration=took,
        user_properties=[("processes", processes)],
    )


def problems(
    known: Durations,
    *reports: pytest.TestReport,
    alone: Mapping[str, float],
    later: Mapping[str, float] | None = None,
) -> list[str]:
    """Return what is wrong; `later`: what the tests take when they are measured again."""
    asked: list[str] = []

    def measure(node_ids: Sequence[str]) -> Mapping[str, float]:
        again = later if asked and later is not None else alone
        asked.extend(node_ids)
        return {function_of(one): again[one] for one in node_ids}

    costs = Costs(known, writes=None, judges=True, measure=measure)
    for one in reports:
        costs.pytest_runtest_logreport(one)
    found = list(costs.problems())
    assert set(asked) == set(alone)
    return found


def test_a_test_that_takes_long_has_to_be_known() -> None:
    known = Durations(seconds={"a.py::test_slow": 3.0})
    reports = [report("a.py::test_slow", 3.1), report("a.py::test_new", 0.9)]
    assert problems(known, *reports, alone={}) == []
    reports += [report("a.py::test_new[x]", 2.5), report("a.py::test_new[y]", 1.5)]
    assert problems(known, *reports, alone={"a.py::test_new[x]": 2.1}) == [
        "a.py::test_new takes 2.1 s and is not known as slow"
    ]


def test_a_test_that_is_slow_once_and_not_alone_was_disturbed() -> None:
    reports = [report("a.py::test_new", 9.0)]
    assert problems(Durations(), *reports, alone={"a.py::test_new": 0.2}) == []
    once, again = {"a.py::test_new": 9.0}, {"a.py::test_new": 0.2}
    assert problems(Durations(), *reports, alone=once, later=again) == []


def test_a_test_near_the_limit_is_slow_when_it_takes_twice_as_long() -> None:
    known = Durations(seconds={"a.py::test_near": 0.9, "a.py::test_a": 2.0, "a.py::test_b": 2.0})
    reports = [report("a.py::test_near", 2.0), report("a.py::test_a", 2.0)]
    reports += [report("a.py::test_b", 2.0)]
    assert problems(known, *reports, alone={"a.py::test_near": 1.9}) == []
    assert len(problems(known, *reports, alone={"a.py::test_near": 2.1})) == 1


def test_a_slow_machine_makes_no_test_slow() -> None:
    known = Durations(seconds={"a.py::test_slow": 3.0, "a.py::test_other": 2.0})
    reports = [report("a.py::test_slow", 9.0), report("a.py::test_other", 6.0)]
    assert problems(known, *reports, report("a.py::test_new", 2.9), alone={}) == []
    slow = report("a.py::test_new", 3.5)
    assert problems(known, *reports, slow, alone={"a.py::test_new": 5.9}) == []
    assert len(problems(known, *reports, slow, alone={"a.py::test_new": 6.1})) == 1


def test_a_run_of_some_tests_replaces_their_entries_alone() -> None:
    this = "tests/e2e/testkit/test_testkit_loops.py"
    known = Durations(
        seconds={f"{this}::test_old": 4.0, f"{this}::test_new": 9.0, "gone.py::test_x": 3.0},
        processes=frozenset({f"{this}::test_quick", "gone.py::test_x", f"{this}::test_new"}),
    )
    costs = Costs(known, writes=None, judges=False, measure=seconds_alone)
    costs.pytest_runtest_logreport(report(f"{this}::test_new[1]", 0.5))
    costs.pytest_runtest_logreport(report(f"{this}::test_other", 0.05, processes=1))
    assert costs.updated(known) == Durations(
        seconds={f"{this}::test_old": 4.0, f"{this}::test_new": 0.5},
        processes=frozenset({f"{this}::test_quick", f"{this}::test_other"}),
    )


@pytest.mark.timeout(120)
def test_a_test_alone_is_measured_when_all_that_it_uses_has_been_used() -> None:
    alone = seconds_alone([f"{FIRST_USE}::test_first", f"{FIRST_USE}::test_slow"])
    assert set(alone) == {f"{FIRST_USE}::test_slow"}


def test_a_test_that_starts_processes_and_is_not_known_to_is_named() -> None:
    known = Durations(processes=frozenset({"a.py::test_known"}))
    costs = Costs(known, writes=None, judges=True, measure=seconds_alone)
    costs.pytest_runtest_logreport(report("a.py::test_known[1]", 0.1, processes=2))
    assert costs.unknown_starts() == []
    costs.pytest_runtest_logreport(report("a.py::test_new[1]", 0.1, processes=2))
    assert costs.unknown_starts() == ["a.py::test_new"]


def test_the_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "durations.toml"
    table = Durations(seconds={"a.py::test_slow": 3.1}, processes=frozenset({"a.py::test_starts"}))
    table.write(path)
    assert Durations.read(path) == table
    assert Durations.read(tmp_path / "none.toml") == Durations()


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux alone")
def test_a_forked_command_is_a_process_as_a_started_one_is(
    tiller_dirs: TillerDirs, child_env: dict[str, str], tmp_path: Path
) -> None:
    def run(*arguments: str) -> tuple[int, bytes, bytes]:
        ran = subprocess.run(
            [*TILLER, *arguments], cwd=tmp_path, env=child_env, capture_output=True, check=False
        )
        return ran.returncode, ran.stdout, ran.stderr

    asked = (["--version"], ["config", "path"], ["nonsense"], ["run"])
    forked = [run(*arguments) for arguments in asked]
    before = fork_server.use(False)  # noqa: FBT003 - a switch
    started = [run(*arguments) for arguments in asked]
    fork_server.use(before)
    assert forked == started


@pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux alone")
def test_a_forked_server_is_our_child_and_hears_signals(
    tiller_dirs: TillerDirs, child_env: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        SERVER, cwd=tmp_path, env=child_env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    with process:
        assert process.pid in descendants(os.getpid())
        assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
