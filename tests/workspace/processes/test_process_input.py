"""A process gets its whole input, and nobody waits for it to read."""

import os
from pathlib import Path

import anyio
import pytest

from agent_core.workspace import ProcessEnd
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.harness.sizes import at_size

LARGE = at_size(ci=4, campaign=32) * 1024 * 1024


@pytest.fixture(params=["in memory", "on disk"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without files in memory, which not every system has."""
    if request.param == "on disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)


async def run(tmp_path: Path, command: str, data: bytes) -> tuple[bytes, ProcessEnd]:
    process = await DiskProcesses().start(
        ("bash", "-c", command), cwd=tmp_path, env={"PATH": os.defpath}, stdin=data
    )
    output: list[bytes] = []
    try:
        with anyio.fail_after(10):
            while chunk := await process.read():
                output.append(chunk)
            return b"".join(output), await process.wait()
    finally:
        _ = await process.end(grace_s=0)


@pytest.mark.parametrize("data", [b"one\n", b"\0\xff\n\r", bytes(range(256)) * 1000])
async def test_the_input_arrives_as_it_is(tmp_path: Path, data: bytes) -> None:
    assert await run(tmp_path, "cat", data) == (data, ProcessEnd(exit_code=0))


async def test_a_large_input_is_neither_cut_nor_a_deadlock(tmp_path: Path) -> None:
    """Output as large as the input would fill a pipe that nobody reads while the other one is being filled."""
    output, end = await run(tmp_path, "tee /dev/stderr | wc -c", b"x" * LARGE)
    assert (len(output), end.exit_code) == (LARGE + len(f"{LARGE}\n"), 0)


async def test_a_process_that_reads_nothing_ends_all_the_same(tmp_path: Path) -> None:
    assert await run(tmp_path, "echo done", b"x" * LARGE) == (b"done\n", ProcessEnd(exit_code=0))


async def test_each_command_reads_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    output, _ = await run(tmp_path, "read a; read b; echo $b $a", b"one\ntwo\n")
    assert output == b"two one\n"


async def test_without_input_there_is_the_end_at_once(tmp_path: Path) -> None:
    command = "cat; [ -t 0 ] || stat -Lc %t:%T /dev/stdin; stat -Lc %t:%T /dev/null"
    output, _ = await run(tmp_path, command, b"")
    stdin, null = output.split()
    assert stdin == null
