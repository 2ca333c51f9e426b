"""A daemon that has no file descriptors left: it stays, rests, says so once, and serves again when there are some."""

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from tests.support.clients.daemons import DaemonProcess, daemon_process, editor, hello, log_of
from tests.support.clients.server import Ground, prompt, says
from tiller_server.daemon import paths

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.starts,
    pytest.mark.timeout(90),
    pytest.mark.skipif(
        sys.platform != "linux", reason="limits are set from outside on Linux alone"
    ),
]

WATCHED_S = 5.0
MOST_CPU = 0.05
"""Share of one processor, on average."""
CAME = 40
"""So many clients wait outside."""
OBJECTION = """
import os, resource
from tiller_server.daemon.admission.peer import Lineage
lineage = Lineage()
print(lineage.objection(os.getppid()))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print(lineage.objection(os.getppid()))
"""


def cpu_s(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    after = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def no_descriptors(daemon: DaemonProcess) -> Generator[None]:
    """Let a process open nothing for as long as the block."""
    before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        if daemon.process.returncode is None:
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, before)


@contextmanager
def waiting_clients(ground: Ground) -> Generator[None]:
    """Connect clients that nobody accepts."""
    clients = [socket(AF_UNIX) for _ in range(CAME)]
    try:
        for client in clients:
            client.setblocking(False)  # noqa: FBT003 - its name says it
            client.connect(paths.socket_path(ground.env))
            with suppress(BlockingIOError):
                client.send(hello(ground.env))
        yield
    finally:
        for client in clients:
            client.close()


async def logged(ground: Ground, text: str) -> None:
    """Wait until the daemon has logged a text."""
    async with asyncio.timeout(20):
        while text not in log_of(ground.env):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)


async def is_served(ground: Ground) -> None:
    """Check that the daemon opens a session and runs a prompt."""
    async with asyncio.timeout(30), await editor(dict(ground.env), ground.root) as client:
        ground.provider.script([says("hello")])
        result = await client.request("agent/prompt", prompt("hi", wait=True), timeout_s=20)
        assert result["status"] == "completed"


async def test_without_descriptors_in_its_first_second_the_daemon_stays_and_recovers(
    ground: Ground,
) -> None:
    async with daemon_process(dict(ground.env)) as daemon:
        await logged(ground, "serves at")
        with no_descriptors(daemon):
            await logged(ground, "could not be made ready")
            assert daemon.process.returncode is None
        await is_served(ground)
        assert "ended by an error" not in log_of(ground.env)


async def test_a_client_that_is_accepted_when_the_agent_cannot_be_loaded_is_served_later(
    ground: Ground,
) -> None:
    async with (
        daemon_process(dict(ground.env)) as daemon,
        await editor(dict(ground.env), ground.root) as client,
    ):
        with no_descriptors(daemon):
            await logged(ground, "cannot be loaded")
        ground.provider.script([says("hello")])
        result = await client.request("agent/prompt", prompt("hi", wait=True), timeout_s=20)
        assert result["status"] == "completed"


async def test_without_descriptors_the_daemon_rests_and_says_so_once(ground: Ground) -> None:
    async with daemon_process(dict(ground.env)) as daemon:
        await is_served(ground)
        size = len(log_of(ground.env))
        with no_descriptors(daemon), waiting_clients(ground):
            await logged(ground, "No connection can be accepted")
            begun, used = time.monotonic(), cpu_s(daemon.pid)
            await asyncio.sleep(WATCHED_S)  # time is what is measured
            share = (cpu_s(daemon.pid) - used) / (time.monotonic() - begun)
            lines = log_of(ground.env)[size:].splitlines()
        print(f"{share:.1%} of a processor while {CAME} clients waited")
        assert share <= MOST_CPU
        # The warm-up falls into this time on a fast machine, and logs its own error.
        warm_ups = [line for line in lines if "could not be made ready" in line]
        assert len(warm_ups) <= 1
        errors = [line for line in lines if "ERROR" in line and line not in warm_ups]
        assert len(errors) == 1
        assert "No connection can be accepted" in errors[0]
        assert len([line for line in lines if "Traceback" in line]) == len(warm_ups)
        await is_served(ground)


def test_a_process_whose_ancestors_cannot_be_read_is_not_let_in() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", OBJECTION], capture_output=True, text=True, timeout=20, check=True
    )
    before, without = ran.stdout.splitlines()
    assert before == "None"
    assert without == "its ancestors cannot be read (Too many open files)"
