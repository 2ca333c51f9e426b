"""What the keeper of a contained command reports."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.keeper import (
    Report,
    find_shell,
    keeper_script,
    limits_processes,
    memory_bytes,
    read_report,
)


@pytest.mark.parametrize(
    ("said", "report"),
    [
        ("0 2\n", Report(exit_code=0, signal=None, processes=2)),
        ("7 3\n", Report(exit_code=7, signal=None, processes=3)),
        ("137 2\n", Report(exit_code=137, signal=None, processes=2)),
        ("keeper: line 1: 5 Killed (exec)\n137 2\n", Report(exit_code=None, signal=9, processes=2)),
        ("143 2\n", Report(exit_code=143, signal=None, processes=2)),
        ("x Terminated\n143 12\n", Report(exit_code=None, signal=15, processes=12)),
        ("141 2\n", Report(exit_code=None, signal=13, processes=2)),
        ("130 2\n", Report(exit_code=None, signal=2, processes=2)),
        ("no such thing\n127 2\n", Report(exit_code=127, signal=None, processes=2)),
        ("said x\n128 2\n", Report(exit_code=128, signal=None, processes=2)),
        ("said x\n129 2\n", Report(exit_code=None, signal=1, processes=2)),
        ("", None),
        ("0 2", None),
        ("bwrap: cannot\n", None),
        ("x0 2\n", None),
        ("9999 2\n", None),
    ],
)
def test_a_report_is_read(said: str, report: Report | None) -> None:
    assert read_report(said) == report


def test_two_processes_are_the_keeper_and_its_init() -> None:
    assert Report(exit_code=0, signal=None, processes=2).was_alone
    assert not Report(exit_code=0, signal=None, processes=3).was_alone


def test_limits_are_set_where_they_count() -> None:
    plain = keeper_script(memory_bytes=None, limits_processes=False)
    assert "ulimit -c 0" in plain
    assert "ulimit -f 8388608" in plain
    assert "ulimit -u" not in plain
    assert "ulimit -d" not in plain
    whole = keeper_script(memory_bytes=4096, limits_processes=True)
    assert "ulimit -d 4 " in whole
    assert "ulimit -u 2048 " in whole


@pytest.mark.parametrize(
    ("release", "counts"),
    [("5.13.19-x", False), ("5.14", True), ("5.14.0-1", True), ("6.0", True), ("4.19.1", False), ("6.x", True)],
)  # fmt: skip
def test_processes_are_limited_where_only_those_of_the_command_count(
    release: str, counts: bool
) -> None:
    assert limits_processes(release) is counts


def test_the_machine_has_a_shell_and_memory() -> None:
    assert Path(str(find_shell())).name == "bash"
    assert (memory_bytes() or 0) > 1 << 20


@pytest.mark.parametrize(
    "shell",
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"],
)
def test_the_shell_is_found_where_systems_keep_it(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) == (shell, os.X_OK))
    assert find_shell() == shell


def test_a_system_without_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert find_shell() is None


def test_memory_that_the_system_does_not_tell_is_not_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", told.__getitem__)
    assert memory_bytes() == 12_288

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert memory_bytes() is None
