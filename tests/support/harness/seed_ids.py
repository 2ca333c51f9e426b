"""Keeps the promise of seed_ids.toml during a run: a listed test is neither missing nor skipped.

Outside of CI a test may be skipped where the machine lacks a program; the run names it.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import pytest

from tests.support.harness.shared import ROOT

SEED_IDS: Final = ROOT / "tests" / "seed_ids.toml"


def load_seed_ids(path: Path = SEED_IDS) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of the reference documents with the tests that cover each.

    Raises:
        ValueError: The file has another shape than id = [node id, …].
    """
    table = _table(path, "ids")
    for seed_id, node_ids in table.items():
        if not isinstance(node_ids, list) or not all(isinstance(node, str) for node in node_ids):
            message = f"seed id {seed_id!r} has {node_ids!r}: give a list of test node ids"
            raise ValueError(message)
    return {seed_id: tuple(node_ids) for seed_id, node_ids in table.items()}


def load_not_applicable(path: Path = SEED_IDS) -> Mapping[str, str]:
    """Return the ids that nothing here can show, each with the reason.

    Raises:
        ValueError: The file has another shape than id = "reason".
    """
    table = _table(path, "not_applicable")
    for seed_id, reason in table.items():
        if not isinstance(reason, str) or not reason.strip():
            message = f"seed id {seed_id!r} has {reason!r}: say why it does not apply"
            raise ValueError(message)
    return dict(table)


@final
class SeedIdGuard:
    """Fails a session in which a listed test was skipped, or was expected and did not turn up.

    Args:
        listed: The node ids of each seed id.
        whole_files: Whether a listed test that is not collected is a problem.
        may_skip: Whether a skipped test is only named. A test that is expected to fail is a problem all the same.
    """

    def __init__(
        self, listed: Mapping[str, tuple[str, ...]], *, whole_files: bool, may_skip: bool
    ) -> None:
        self._ids_of = _by_test(listed)
        self._whole_files = whole_files
        self._may_skip = may_skip
        self._skipped: list[str] = []
        self._seen: set[str] = set()
        self._problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what ran, and what was skipped or excused."""
        self._seen.update((report.nodeid, _function_of(report.nodeid)))
        if not report.skipped:
            return
        why = _reason(report)
        is_excused = self._may_skip and not hasattr(report, "wasxfail")
        found = self._skipped if is_excused else self._problems
        for node_id in sorted({report.nodeid, _function_of(report.nodeid)}):
            for seed_id in self._ids_of.get(node_id, ()):
                found.append(f"{seed_id}: {report.nodeid} was skipped ({why})")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Turn a broken promise into a failed session."""
        if self._whole_files and exitstatus == pytest.ExitCode.OK:
            files = {node_id.split("::")[0] for node_id in self._seen}
            self._problems.extend(
                f"{', '.join(seed_ids)}: {node_id} was not collected"
                for node_id, seed_ids in self._ids_of.items()
                if node_id.split("::")[0] in files and node_id not in self._seen
            )
        if self._problems and exitstatus in {
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which ids lost their test."""
        if self._problems:
            terminalreporter.section("seed ids without their test", red=True)
            for problem in self._problems:
                terminalreporter.write_line(problem)
        if self._skipped:
            terminalreporter.section("seed ids that this machine cannot test")
            for skipped in self._skipped:
                terminalreporter.write_line(skipped)


def guard_for(
    config: pytest.Config,
    listed: Mapping[str, tuple[str, ...]] | None = None,
    *,
    may_skip: bool = False,
) -> SeedIdGuard:
    """Return the guard of this session, strict about absence only when nothing was deselected."""
    option = config.option
    chosen = any(getattr(option, name, None) for name in ("keyword", "markexpr", "lf", "deselect"))
    chosen = chosen or getattr(option, "loop", "full") != "full"
    stops = bool(getattr(option, "maxfail", 0) or getattr(option, "collectonly", False))
    named = any("::" in argument for argument in config.args)
    return SeedIdGuard(
        load_seed_ids() if listed is None else listed,
        whole_files=not (chosen or stops or named),
        may_skip=may_skip,
    )


def _table(path: Path, name: str) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8")).get(name, {})


def _by_test(listed: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    tests = {node_id for node_ids in listed.values() for node_id in node_ids}
    return {
        test: tuple(seed_id for seed_id, node_ids in listed.items() if test in node_ids)
        for test in tests
    }


def _function_of(node_id: str) -> str:
    return node_id.split("[", maxsplit=1)[0]


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return str(getattr(report, "wasxfail", "") or "expected to fail")
