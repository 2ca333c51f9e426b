"""What every adapter of `Processes` keeps: order of output, ends of whole trees, and no process that hides."""

import signal
from collections.abc import Mapping
from typing import ClassVar, Protocol

import anyio
import pytest

from agent_core.workspace import KillReport, Process, ProcessEnd
from tests.support.harness.sizes import at_size

GRACE_S = 0.15
# Each starts something that sleeps, then says "up" once it does.
HIDING: Mapping[str, str] = {
    "children": "sleep 600 & sleep 600 & echo up; wait",
    "setsid": "setsid sleep 600 & sleep 0.05; echo up; wait",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo up",
    "orphan": "(setsid sleep 600 >/dev/null 2>&1 &) ; echo up",
    "double fork": """exec python3 -c '
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
print("up", flush=True)
time.sleep(600)'""",
    "first thread gone": """exec env -i python3 -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
if os.fork(): os._exit(0)
os.setsid()
threading.Thread(target=time.sleep, args=(600,)).start()
print("up", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)'""",
    "ignored signals": "trap '' TERM INT HUP; echo up; while true; do sleep 600; done",
    "ignored and hidden": "(setsid bash -c 'trap \"\" TERM INT HUP; sleep 600; sleep 600' >/dev/null 2>&1 &); echo up",
    "stopped": "sleep 600 & kill -STOP $!; echo up; wait",
    "without environment": "env -i nohup sleep 600 >/dev/null 2>&1 & echo up; wait",
    "alone without environment": "env -i setsid bash -c '(sleep 600 >/dev/null 2>&1 &)'; echo up",
    "nothing inherited": "env -i setsid bash -c '(cd /; exec -a x sleep 600 <&- >&- 2>&- &)'; echo up",
    "another mark": "TILLER_PROCESS_ID=other setsid sleep 600 & echo up; wait",
}


class CommandShell(Protocol):
    """Starts commands that carry a mark of the test's own."""

    is_contained: bool

    async def start(self, command: str) -> Process: ...

    async def left(self) -> set[int]: ...


async def output_of(process: Process) -> bytes:
    """Return everything that a process writes."""
    output = b""
    while chunk := await process.read():
        output += chunk
    return output


class ProcessesConformance:
    """The tests; `shell` is a fixture."""

    end_s: ClassVar = 3.0
    """Time in which a tree is ended that hides."""

    async def test_output_and_errors_come_in_order(self, shell: CommandShell) -> None:
        process = await shell.start("echo one; echo two >&2; echo three; exit 7")
        assert await output_of(process) == b"one\ntwo\nthree\n"
        assert await process.wait() == ProcessEnd(exit_code=7)
        assert await process.end(grace_s=GRACE_S) == KillReport(pids=(), survivors=())

    async def test_the_signal_of_its_end_is_reported(self, shell: CommandShell) -> None:
        process = await shell.start("kill -TERM $$")
        assert await process.wait() == ProcessEnd(exit_code=None, signal=signal.SIGTERM)
        _ = await process.end(grace_s=GRACE_S)

    @pytest.mark.parametrize("hiding", HIDING)
    async def test_nothing_hides(self, shell: CommandShell, hiding: str) -> None:
        for _ in range(at_size(ci=1, campaign=20)):
            process = await shell.start(HIDING[hiding])
            assert await process.read() == b"up\n"
            with anyio.fail_after(self.end_s):
                killed = await process.end(grace_s=GRACE_S)
            assert killed.pids
            assert killed.survivors == ()
            assert await shell.left() == set()

    async def test_it_is_asked_before_it_is_killed(self, shell: CommandShell) -> None:
        process = await shell.start(
            "trap '' INT; trap 'echo asked; exit 3' TERM; echo up; sleep 600 & wait"
        )
        assert await process.read() == b"up\n"
        _ = await process.end(grace_s=15)
        assert await output_of(process) == b"asked\n"
        assert await process.wait() == ProcessEnd(exit_code=3)

    async def test_ending_twice_is_ending_once(self, shell: CommandShell) -> None:
        process = await shell.start("exec sleep 600")
        first = await process.end(grace_s=GRACE_S)
        assert first == KillReport(pids=(process.pid,), survivors=())
        assert await process.end(grace_s=GRACE_S) == KillReport(pids=(), survivors=())

    async def test_those_who_wait_and_read_are_woken(self, shell: CommandShell) -> None:
        process = await shell.start("exec sleep 600")
        ends: list[object] = []

        async def wait() -> None:
            ends.append(await process.wait())

        async def read() -> None:
            ends.append(await process.read())

        with anyio.fail_after(max(self.end_s, 5)):
            async with anyio.create_task_group() as group:
                for watch in (wait, wait, read):
                    group.start_soon(watch)
                await anyio.wait_all_tasks_blocked()
                _ = await process.end(grace_s=GRACE_S)
        # What is contained may not have begun yet; then it is not asked.
        number = next(end.signal for end in ends if isinstance(end, ProcessEnd))
        assert number == signal.SIGTERM or (shell.is_contained and number == signal.SIGKILL)
        end = ProcessEnd(exit_code=None, signal=number)
        assert sorted(map(repr, ends)) == sorted(map(repr, [end, end, b""]))
