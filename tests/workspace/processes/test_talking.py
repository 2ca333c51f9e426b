"""Programs that are spoken with: what goes in and comes out, apart from complaints, until the last of them is gone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import FileMissing, ProcessGone
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.processes.interactive import InteractiveProcess
from tests.support.workspace.contained import contained_processes, require_full

ENV = {"PATH": "/usr/bin:/bin"}
ECHO = 'while read line; do echo "heard $line"; echo "complained of $line" >&2; done; echo bye'


@pytest.fixture(params=["open", "contained"])
def way(request: pytest.FixtureRequest) -> str:
    """Name the way in which programs are started."""
    if request.param == "contained":
        require_full()
    return str(request.param)


@asynccontextmanager
async def started(
    way: str, root: Path, *argv: str, given: dict[str, str] | None = None
) -> AsyncGenerator[InteractiveProcess]:
    async with contained_processes(root) if way == "contained" else plain() as processes:
        talk = await processes.talk(argv, cwd=root, env=ENV, given=given or {})
        try:
            with anyio.fail_after(15):
                yield talk
        finally:
            await talk.end(grace_s=0.1)


@asynccontextmanager
async def plain() -> AsyncGenerator[DiskProcesses]:
    yield DiskProcesses()


async def test_output_and_complaints_come_apart(way: str, tmp_path: Path) -> None:
    async with started(way, tmp_path, "bash", "-c", ECHO) as talk:
        await talk.write(b"one\n")
        assert await talk.read() == b"heard one\n"
        assert await talk.read_errors() == b"complained of one\n"
        talk.finish()
        assert await talk.read() == b"bye\n"
        assert await talk.read() == b""
        assert (await talk.wait()).exit_code == 0


async def test_more_than_a_pipe_holds_goes_both_ways(way: str, tmp_path: Path) -> None:
    size = 3_000_000
    async with started(way, tmp_path, "cat") as talk, anyio.create_task_group() as group:
        group.start_soon(talk.write, b"x" * size)
        came = 0
        while came < size:
            came += len(await talk.read())
        assert came == size


async def test_what_is_given_comes_on_top(way: str, tmp_path: Path) -> None:
    given = {"MY_TOKEN": "given"}
    command = ("bash", "-c", "echo $MY_TOKEN; cat")
    async with started(way, tmp_path, *command, given=given) as talk:
        assert await talk.read() == b"given\n"


async def test_whoever_does_not_listen_is_no_longer_spoken_to(way: str, tmp_path: Path) -> None:
    async with started(way, tmp_path, "bash", "-c", "exec <&-; echo closed; sleep 5") as talk:
        if way == "open":
            assert await talk.read() == b"closed\n"
            with pytest.raises(ProcessGone):
                await talk.write(b"x" * 200_000)
        talk.finish()
        with pytest.raises(ProcessGone):
            await talk.write(b"x")


async def test_all_that_it_started_ends_with_it(way: str, tmp_path: Path) -> None:
    command = "setsid bash -c 'echo $$ > pid; sleep 1000' & echo on; cat"
    async with started(way, tmp_path, "bash", "-c", command) as talk:
        assert await talk.read() == b"on\n"
        killed = await talk.end(grace_s=0.1)
        assert killed.survivors == ()
        assert (await talk.end(grace_s=0.1)).pids == ()


async def test_a_write_that_waits_can_be_cancelled(way: str, tmp_path: Path) -> None:
    async with started(way, tmp_path, "sleep", "1000") as talk:
        with anyio.move_on_after(0.05) as waiting:
            await talk.write(b"x" * 5_000_000)
        assert waiting.cancelled_caught


async def test_a_program_that_is_not_there_is_named(way: str, tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="nothing-of-that-name"):
        async with started(way, tmp_path, "nothing-of-that-name"):
            pass
