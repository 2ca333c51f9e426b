"""Processes are read in order, end as whole trees, and leave nothing behind."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from uuid import uuid4

import anyio
import psutil
import pytest
from anyio import to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing
from agent_core.workspace import Process
from agent_core.workspace.processes.disk_processes import DiskProcesses, PsutilTable
from agent_core.workspace.processes.mark import MARK
from agent_core.workspace.processes.proc_table import ProcTable
from agent_core.workspace.processes.tree import ProcessTable
from tests.support.workspace.contained import contained
from tests.support.workspace.processes import descendants, processes_with, waiting_with
from tests.workspace.processes.conformance import GRACE_S, HIDING, ProcessesConformance, output_of

TABLES = [
    pytest.param(PsutilTable(), id="psutil"),
    pytest.param(
        ProcTable(), id="proc", marks=pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
    ),
]


class Shell:
    """Starts commands that carry a mark of the test's own, in a variable that commands get."""

    def __init__(
        self,
        processes: DiskProcesses,
        cwd: Path,
        *,
        is_contained: bool = False,
        waits: bool = False,
    ) -> None:
        self._processes = processes
        self._cwd = cwd
        self.is_contained = is_contained
        self.mark = f"mark-{uuid4().hex}"
        self._waits = waits

    async def start(self, command: str, **env: str) -> Process:
        variables = {"PATH": os.defpath, "GIT_AUTHOR_NAME": self.mark, **env}
        if self._waits:
            self._waits = False
            first = await self._processes.start(("true",), cwd=self._cwd, env=variables)
            await first.wait()
            await first.end(grace_s=GRACE_S)
            await self.settled()
        return await self._processes.start(("bash", "-c", command), cwd=self._cwd, env=variables)

    async def settled(self) -> None:
        """Wait until what is started ahead of the next command is there."""
        if self.is_contained:
            await to_thread.run_sync(lambda: waiting_with(self.mark))

    async def left(self) -> set[int]:
        """Return what carries the mark."""
        return processes_with(self.mark)


@pytest.fixture(params=[*TABLES, "contained", "waiting"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    table: ProcessTable | Literal["contained", "waiting"] = request.param
    if not isinstance(table, str):
        yield Shell(DiskProcesses(table=table), tmp_path)
        return
    root = tmp_path.resolve() / "ws"
    root.mkdir()
    with contained(root) as sandbox:
        processes = DiskProcesses(sandbox=sandbox)
        yield Shell(processes, root, is_contained=True, waits=table == "waiting")


class TestDiskProcesses(ProcessesConformance):
    """On this machine."""


async def test_there_is_no_input(shell: Shell) -> None:
    process = await shell.start("cat; echo end")
    assert await output_of(process) == b"end\n"
    await process.end(grace_s=GRACE_S)


async def test_the_environment_is_what_was_given_and_a_mark(shell: Shell) -> None:
    process = await shell.start("env")
    names = {line.split(b"=")[0].decode() for line in (await output_of(process)).splitlines()}
    await process.end(grace_s=GRACE_S)
    ours = {"TMPDIR", "XDG_CACHE_HOME", "npm_config_cache"} if shell.is_contained else set[str]()
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "GIT_AUTHOR_NAME", MARK} | ours


async def test_it_leads_a_group_and_session_of_its_own(shell: Shell) -> None:
    process = await shell.start("sleep 600")
    assert (os.getpgid(process.pid), os.getsid(process.pid)) == (process.pid, process.pid)
    await process.end(grace_s=GRACE_S)


async def test_a_tree_that_keeps_forking_ends(shell: Shell) -> None:
    process = await shell.start(
        "trap '' TERM INT; f() { sleep 0.01; (f &) ; sleep 0.02; }; echo up; f; sleep 600"
    )
    assert await process.read() == b"up\n"
    with anyio.fail_after(6):
        assert (await process.end(grace_s=GRACE_S)).survivors == ()
    assert await shell.left() == set()


async def test_the_end_is_prompt(shell: Shell) -> None:
    """A cancel is answered within half a second, the grace included, also when signals are ignored."""
    process = await shell.start(HIDING["ignored and hidden"])
    assert await process.read() == b"up\n"
    with anyio.fail_after(1.5):
        await process.end(grace_s=GRACE_S)


async def test_an_outer_tiller_finds_the_processes_of_an_inner_one(shell: Shell) -> None:
    process = await shell.start(f"echo ${MARK}", **{MARK: "outer"})
    assert (await output_of(process)).startswith(b"outer:")
    await process.end(grace_s=GRACE_S)


async def test_other_processes_are_left_alone(shell: Shell) -> None:
    bystander = await shell.start("sleep 600")
    process = await shell.start("sleep 600")
    await process.end(grace_s=GRACE_S)
    left = await shell.left()
    assert left
    assert left <= {bystander.pid} | descendants(bystander.pid)
    await bystander.end(grace_s=GRACE_S)


async def test_no_descriptor_is_left_open(shell: Shell) -> None:
    async def once() -> None:
        process = await shell.start("echo x; sleep 600")
        await process.read()
        await process.end(grace_s=GRACE_S)
        await shell.settled()

    await once()
    before = _open_descriptors()
    for _ in range(5):
        await once()
    assert _open_descriptors() <= before


def _open_descriptors() -> int:
    return psutil.Process().num_fds()


async def test_before_start_there_is_nothing_to_do_on_disk() -> None:
    assert await DiskProcesses().before_start() is None


async def test_what_cannot_be_started_is_said_in_words(tmp_path: Path) -> None:
    processes = DiskProcesses()
    (tmp_path / "data.txt").write_text("no program")
    for argv, cwd, error, words in (
        (
            ("no-such-program",),
            tmp_path,
            FileMissing,
            "Program not found: no-such-program (ENOENT)",
        ),
        (("/no/such/shell", "-c", "x"), tmp_path, FileMissing, "ENOENT"),
        (
            ("true",),
            tmp_path / "gone",
            FileMissing,
            f"Working directory does not exist: {tmp_path / 'gone'}",
        ),
        ((str(tmp_path / "data.txt"),), tmp_path, AccessRefused, "EACCES"),
        (("bash", "-c", "x" * 200_000), tmp_path, AccessRefused, "too long"),
        (("bash", "-c", "a\0b"), tmp_path, AccessRefused, "NUL"),
        (("bash", "-c", "\ud83d"), tmp_path, AccessRefused, "broken characters"),
    ):
        with pytest.raises(error) as raised:
            await processes.start(argv, cwd=cwd, env={"PATH": os.defpath})
        assert words in str(raised.value)
