"""A process keeps the mark of its command, and nobody else gets it."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import anyio
import pytest
from anyio import to_thread

from agent_core.workspace.processes.disk_processes import PsutilTable
from agent_core.workspace.processes.mark import (
    LOCKS_LIMIT,
    MARK,
    ProcessMark,
    fresh_mark,
    limit_of,
)
from agent_core.workspace.processes.proc_table import ProcTable
from agent_core.workspace.processes.tree import ProcessTable, ProcessTree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
TABLES = [pytest.param(PsutilTable(), id="psutil"), pytest.param(ProcTable(), id="proc")]
AGES_S = 1e9
"""Long enough for the ids to have begun anew."""


@contextmanager
def _sleeper(env: dict[str, str]) -> Generator[int]:
    # It speaks first: before, the system may not know its environment yet.
    with subprocess.Popen(
        ["bash", "-c", "echo up; read"],
        env={"PATH": os.defpath, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        try:
            yield process.pid
        finally:
            process.kill()


def _tree(table: ProcessTable, mark: ProcessMark) -> ProcessTree:
    """A tree whose first process is not among the living."""
    return ProcessTree(
        table=table, first=0, mark=mark, begun_s=time.monotonic() - AGES_S, reaped=True
    )


def test_the_limit_is_inherited_and_taken_back() -> None:
    before = resource.getrlimit(LOCKS_LIMIT)
    with fresh_mark() as mark, _sleeper({}) as pid:
        assert limit_of(pid) == mark.limit
    assert resource.getrlimit(LOCKS_LIMIT) == before


def test_the_limit_is_taken_back_after_a_failure() -> None:
    before = resource.getrlimit(LOCKS_LIMIT)
    with pytest.raises(FileNotFoundError), fresh_mark():
        subprocess.Popen(["/no/such/program"])
    assert resource.getrlimit(LOCKS_LIMIT) == before


def test_every_mark_is_another() -> None:
    marks = set()
    for _ in range(3):
        with fresh_mark() as mark:
            marks |= {mark.text, mark.limit}
    assert len(marks) == 6


async def test_marks_made_at_once_do_not_mix() -> None:
    def one() -> None:
        with fresh_mark() as mark, _sleeper({}) as pid:
            assert limit_of(pid) == mark.limit

    before = resource.getrlimit(LOCKS_LIMIT)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(to_thread.run_sync, one)
    assert resource.getrlimit(LOCKS_LIMIT) == before


@pytest.mark.parametrize("table", TABLES)
def test_a_process_is_known_by_either_mark(table: ProcessTable) -> None:
    with fresh_mark() as mark, _sleeper({}) as pid:
        assert table.carries(pid, mark) == "limit"
    without_limit = ProcessMark(text=mark.text, limit=None)
    with _sleeper({MARK: f"outer:{mark.text}"}) as pid:
        assert table.carries(pid, without_limit) == "variable"
        assert table.carries(os.getpid(), without_limit) is None
    with fresh_mark(), _sleeper({MARK: mark.text}) as pid:  # as a Tiller inside starts it
        assert table.carries(pid, mark) == "variable"


@pytest.mark.parametrize("table", TABLES)
def test_what_another_thread_starts_meanwhile_is_left_alone(table: ProcessTable) -> None:
    with fresh_mark() as mark, _sleeper({}) as pid:
        assert table.carries(pid, mark) == "limit"
        assert dict(_tree(table, mark).members()) == {}
    with _sleeper({MARK: mark.text}) as pid:
        own = ProcessMark(text=mark.text, limit=None)
        assert set(_tree(table, own).members()) == {pid}


@pytest.mark.parametrize("table", TABLES)
def test_what_such_a_process_starts_is_left_alone_too(table: ProcessTable) -> None:
    with fresh_mark() as mark:
        starting = subprocess.Popen(
            ["bash", "-c", "sleep 60 & echo $!; wait"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
    with starting:
        assert starting.stdout is not None
        below = int(starting.stdout.readline())
        try:
            assert table.carries(below, mark) == "limit"
            assert dict(_tree(table, mark).members()) == {}
            # Of the tree's own process, and of one that has ended, it is a member.
            own = ProcessTree(table=table, first=starting.pid, mark=mark, begun_s=time.monotonic())
            assert below in own.members()
            starting.kill()
            _ = starting.wait()
            assert set(_tree(table, mark).members()) == {below}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(starting.pid, signal.SIGKILL)


def test_ids_that_have_begun_anew_are_looked_at_too() -> None:
    table = ProcTable()
    with _sleeper({}) as old, _sleeper({}) as first, _sleeper({}) as young:
        assert {old, first, young} <= table.living(first=first, age_s=AGES_S).keys()
        assert {first, young} <= table.living(first=first, age_s=0).keys()


def test_the_newest_process_is_known_at_once() -> None:
    table = ProcTable()
    tries = 100  # others start processes too
    while True:
        with _sleeper({}) as pid:
            seen = table.is_newest(pid)
            if seen:
                with _sleeper({}):
                    assert not table.is_newest(pid)
                return
        tries -= 1
        assert tries > 0
