"""Which test runs in which loop, and what each test costs: `make quick`, `make test`, `make full`.

Nobody writes these marks; one hook derives them from what a test uses and from what it was last seen to do:

- `editor`: its module starts real editors;
- `process`: a fixture of it starts processes, or `durations.toml` says that it did;
- `slow`: `durations.toml` says that it took more than a second.

`durations.toml` is written by a run of everything with `--write-durations` (`make durations`); a run of some tests
replaces their entries alone. A run of everything without it fails where a test that the table does not know as slow
takes more than a second: in that run, and again alone. Where the machine is much slower than the one that wrote the
table, nothing can be said, and the tests are only named.
"""

import gc
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, cast, final

import pytest

from tests.support.harness.shared import ROOT

DURATIONS: Final = ROOT / "tests" / "durations.toml"
SLOW_S: Final = 1.0
ALONE_S: Final = 2.0
"""The limit of a test by itself: a second above the first one, since another machine may be half as fast."""
UNSTEADY: Final = 2.0
"""So many times what the table says is no news: a test near the limit would be slow on some days."""
LOOKS: Final = 3
"""So many times a test is measured alone before it is called slow."""
ALONE_LIMIT_S: Final = 600.0
COMPARED_S: Final = 0.3
"""What took less when the table was made says nothing about how fast the machine is."""
JUDGED_PACE: Final = 1.5
"""Where the machine is so many times slower than when the table was made, times are only printed."""
NOTED_S: Final = 0.1
"""What takes less says nothing about how slow the machine is now."""
READS_ALL: Final = ROOT / "tests" / "architecture"
LONG_S: Final = 5.0
LISTED: Final = 20
PROCESS_FIXTURES: Final = frozenset({"ground", "covered_env"})
EDITOR_MODULES: Final = ("tests.support.programs.real_editors", "tests.support.programs.real_emacs")
MARKS: Final = (
    "slow: derived: takes more than a second",
    "process: derived: starts a process",
    "editor: derived: starts a real editor",
    "starts: starts our commands as a user does, not forked from a process that has imported them",
)
Loop = Literal["quick", "test", "rest", "full"]
LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    "quick": frozenset({"process", "editor", "slow"}),
    "test": frozenset({"editor", "slow"}),
}
"""The marks whose tests a loop leaves out; what is marked `starts` is in `test` all the same."""
Measure = Callable[[Sequence[str]], Mapping[str, float]]
"""Runs tests alone; returns the seconds of each test function, without those that take less than `NOTED_S`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """What the tests were last seen to cost; the keys are node ids without parameters."""

    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    processes: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path = DURATIONS) -> "Durations":
        """Read the table; empty where there is none."""
        if not path.exists():
            return cls()
        table = tomllib.loads(path.read_text("utf-8"))
        return cls(seconds=table["seconds"], processes=frozenset(table["processes"]["started"]))

    def write(self, path: Path) -> None:
        """Write the table, in the order of the names."""
        lines = [
            "# Written by `make durations`: what tests cost in a run of everything, with coverage, two at a time.",
            "",
            "# Seconds of the slowest case, where that is more than a tenth.",
            "[seconds]",
            *(f'"{name}" = {value:.1f}' for name, value in sorted(self.seconds.items())),
            "",
            "# What started a process although none of its fixtures is known to.",
            "[processes]",
            "started = [",
            *(f'  "{name}",' for name in sorted(self.processes)),
            "]",
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def function_of(node_id: str) -> str:
    """Give a node id without its parameters."""
    return node_id.partition("[")[0]


@final
class Marks:
    """Marks the tests and chooses those of the loop, in every process that collects."""

    def __init__(self, loop: Loop, durations: Durations, *, twice: bool = False) -> None:
        self._loop: Loop = loop
        self._known = durations
        self._twice = twice
        self.left_out: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """Keep what was collected out of the collector's sight: tests that ask for a full collection wait for it."""
        _ = gc.collect()
        gc.freeze()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Derive the marks, take out what another loop runs, and put the slow first."""
        starts_editor = cache(_starts_editor)
        for item in items:
            for name in self._derived(item, is_editor=starts_editor(_module(item))):
                item.add_marker(name)
        chosen = [item for item in items if self._is_chosen(item)]
        if len(chosen) < len(items):
            kept = set(map(id, chosen))
            config.hook.pytest_deselected(items=[one for one in items if id(one) not in kept])
        chosen.sort(key=self._place)
        items[:] = chosen * 2 if self._twice else chosen

    def _place(self, item: pytest.Item) -> tuple[bool, bool]:
        """Put first what takes long, so that no worker is alone with it at the end, then all that reads every file once."""
        is_short = self._known.seconds.get(function_of(item.nodeid), 0.0) < LONG_S
        return is_short, READS_ALL not in item.path.parents

    def _derived(self, item: pytest.Item, *, is_editor: bool) -> Iterable[str]:
        name = function_of(item.nodeid)
        if is_editor:
            yield "editor"
        if name in self._known.processes or PROCESS_FIXTURES & set(
            getattr(item, "fixturenames", ())
        ):
            yield "process"
        if self._known.seconds.get(name, 0.0) > SLOW_S:
            yield "slow"

    def _is_chosen(self, item: pytest.Item) -> bool:
        if self._loop == "full":
            return True
        loop = "test" if self._loop == "rest" else self._loop
        found = LEFT_OUT[loop] & {mark.name for mark in item.iter_markers()}
        is_in = not found or (loop == "test" and item.get_closest_marker("starts") is not None)
        if not is_in:
            self.left_out[min(found)] += 1
        return is_in is (self._loop != "rest")


def _module(item: pytest.Item) -> Any:
    return getattr(item, "module", None) or item


def _starts_editor(module: Any) -> bool:
    """Tell whether something in a module comes from one that starts editors."""
    return any(
        str(getattr(value, "__module__", "")) in EDITOR_MODULES for value in vars(module).values()
    )


@final
class Counted:
    """Counts the processes that each test starts, in the process that runs it."""

    def __init__(self) -> None:
        self._count = 0
        popen: Any = subprocess.Popen
        original = popen.__init__

        def counting(process: Any, *args: Any, **named: Any) -> None:
            self._count += 1
            original(process, *args, **named)

        popen.__init__ = counting

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Begin to count with the fixtures."""
        self._count = 0
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Tell the process that gives the tests out."""
        report = yield
        report.user_properties = [*report.user_properties, ("processes", self._count)]
        return report


@final
class Costs:
    """Compares what the tests cost with the table, or writes the table, in the process that gives the tests out."""

    def __init__(
        self, known: Durations, *, writes: Path | None, judges: bool, measure: Measure
    ) -> None:
        self._known = known
        self._writes = writes
        self._judges = judges
        self._measure = measure
        self._taken: defaultdict[str, float] = defaultdict(float)
        self._started: set[str] = set()
        self._excused: set[str] = set()
        self._editors: set[str] = set()
        self._problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the parts of a test; of one that runs twice the second time counts."""
        if report.when == "setup":
            self._taken[report.nodeid] = 0.0
        self._taken[report.nodeid] += report.duration
        if dict(report.user_properties).get("processes"):
            self._started.add(function_of(report.nodeid))
        if {"process", "editor"} & set(report.keywords):
            self._excused.add(function_of(report.nodeid))
        if "editor" in report.keywords:
            self._editors.add(function_of(report.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write, or judge after a run in which nothing failed."""
        if self._writes is not None:
            self.updated(Durations.read(self._writes)).write(self._writes)
        elif self._judges and exitstatus == pytest.ExitCode.OK:
            self._problems = self.problems()
            if self._problems and self._pace() <= JUDGED_PACE:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the table does not say, and the slowest tests."""
        for problem in self._problems:
            terminalreporter.write_line(problem, red=True)
        if self._problems and self._pace() > JUDGED_PACE:
            terminalreporter.write_line(
                f"not judged: this machine is {self._pace():.1f} times slower than the table says"
            )
        elif self._problems:
            terminalreporter.write_line("make them cheaper, or run: make durations")
        if self._judges or self._writes is not None:
            if started := self.unknown_starts():
                terminalreporter.section("processes that the table does not know")
                terminalreporter.write_line("\n".join(started))
            slowest = sorted(self._slowest().items(), key=lambda one: -one[1])[:LISTED]
            terminalreporter.section(f"slowest {LISTED}")
            for name, took in slowest:
                terminalreporter.write_line(f"{took:6.1f} s  {name}")

    def updated(self, table: Durations) -> Durations:
        """Return a table with new entries for the tests that ran, and without those of files that are gone."""
        slowest = self._slowest()

        def is_kept(name: str) -> bool:
            return name not in slowest and (ROOT / name.partition("::")[0]).exists()

        kept = {name: took for name, took in table.seconds.items() if is_kept(name)}
        new = {name: took for name, took in slowest.items() if took > NOTED_S}
        started = self._started - self._excused | self._started & self._known.processes
        started |= {name for name in table.processes if is_kept(name)}
        return Durations(seconds=kept | new, processes=frozenset(started))

    def problems(self) -> list[str]:
        """Name the tests that are slow, are not known to be, and are slow alone too, each of `LOOKS` times.

        In a run of everything a test may be disturbed, or be the first that uses what all tests use; alone, the
        machine may be busy with something else for a while.
        """
        pace = self._pace()
        suspects = self._suspects(pace)
        alone: Mapping[str, float] = {}
        for _ in range(LOOKS):
            alone = self._measure(list(suspects.values())) if suspects else {}
            suspects = {
                name: node_id
                for name, node_id in suspects.items()
                if alone.get(name, 0.0) / pace
                > max(ALONE_S, UNSTEADY * self._known.seconds.get(name, 0.0))
            }
        return [f"{name} takes {alone[name]:.1f} s and is not known as slow" for name in suspects]

    def unknown_starts(self) -> list[str]:
        """Name what started a process and is not known to: perhaps by a look that only the first test of a worker makes."""
        return sorted(self._started - self._excused - self._known.processes)

    def _slowest(self) -> dict[str, float]:
        slowest: dict[str, float] = {}
        for node_id, took in self._taken.items():
            name = function_of(node_id)
            slowest[name] = max(took, slowest.get(name, 0.0))
        return slowest

    def _pace(self) -> float:
        """Return how many times slower the machine is than when the table was made; at least 1."""
        slowest = self._slowest()
        paces = [
            slowest[name] / known
            for name, known in self._known.seconds.items()
            if known > COMPARED_S and name in slowest
        ]
        return max(1.0, median(paces)) if paces else 1.0

    def _suspects(self, pace: float) -> dict[str, str]:
        """Return the tests that were too slow at a pace and are not known to be, each with its slowest case."""
        slowest: dict[str, str] = {}
        for node_id, took in sorted(self._taken.items(), key=lambda one: one[1]):
            if took / pace > SLOW_S:
                slowest[function_of(node_id)] = node_id
        return {
            name: node_id
            for name, node_id in sorted(slowest.items())
            if self._known.seconds.get(name, 0.0) <= SLOW_S and name not in self._editors
        }


def seconds_alone(node_ids: Sequence[str]) -> Mapping[str, float]:
    """Run tests by themselves, twice and without coverage; returns what the second time took."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # noqa: TID251 - the child's
    with tempfile.TemporaryDirectory(prefix="alone-") as folder:
        path = Path(folder) / "durations.toml"
        options = ["-q", "-p", "no:randomly", "--twice", f"--write-durations={path}"]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *node_ids],
            cwd=ROOT,
            env=env,
            stdout=subprocess.DEVNULL,
            timeout=ALONE_LIMIT_S,
            check=False,
        )
        if not path.exists():
            message = (
                f"pytest ended with {ran.returncode} and measured nothing: {' '.join(node_ids)}"
            )
            raise RuntimeError(message)
        return Durations.read(path).seconds


def add_options(parser: pytest.Parser) -> None:
    """Add what the Makefile passes."""
    parser.addoption("--loop", choices=("quick", "test", "rest", "full"), default="full")
    parser.addoption("--write-durations", type=Path, help="where to write what tests cost")
    parser.addoption("--twice", action="store_true", help="run each test two times")


def of(config: pytest.Config) -> Loop:
    """Give the loop of a run."""
    return cast("Loop", config.getoption("loop"))


def register(config: pytest.Config, *, is_worker: bool) -> None:
    """Add the parts to a run; `is_worker` where another process gives the tests out."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    known = Durations.read()
    loop = of(config)
    twice = bool(config.getoption("twice"))
    config.pluginmanager.register(Marks(loop, known, twice=twice), "loop-marks")
    runs_tests = is_worker or not config.getoption("numprocesses", None)
    if runs_tests:
        config.pluginmanager.register(Counted(), "loop-counted")
    if not is_worker:
        costs = Costs(
            known,
            writes=cast("Path | None", config.getoption("write_durations")),
            judges=loop == "test" and bool(config.getoption("cov_source", None)),
            measure=seconds_alone,
        )
        config.pluginmanager.register(costs, "loop-costs")
