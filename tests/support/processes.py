"""Looks at the processes of the machine: who descends from whom, who carries a mark, who is gone."""

import os
import select
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

import psutil

USUAL_S = 10.0
LOOK_AGAIN_S = 0.01


def descendants(pid: int) -> set[int]:
    """Give the living processes below one; children that moved to another parent are not among them."""
    with suppress(psutil.NoSuchProcess):
        return living(child.pid for child in psutil.Process(pid).children(recursive=True))
    return set()


def processes_with(
    *marks: str, below: int | None = None, at_least: int = 0, timeout_s: float = USUAL_S
) -> set[int]:
    """Give the living processes, except this one, that carry every mark in their arguments or environment.

    A mark in the environment is inherited, so it also finds what a tool left behind in another session.

    Args:
        below: Look only at the descendants of this process.
        at_least: Wait until there are so many; blocks.

    Raises:
        TimeoutError: There are fewer after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while len(found := _carriers(marks, below=below)) < at_least:
        if time.monotonic() > deadline:
            message = f"{len(found)} processes with {marks!r} after {timeout_s} s, not {at_least}"
            raise TimeoutError(message)
        # Nothing tells of the birth of somebody else's process: look again, but not all the time.
        select.select([], [], [], LOOK_AGAIN_S)
    return found


def living(pids: Iterable[int]) -> set[int]:
    """Give those of the processes that still run; a zombie does not."""
    return {pid for pid in pids if _runs(pid)}


def wait_gone(pids: Iterable[int], *, timeout_s: float = USUAL_S) -> set[int]:
    """Wait until the processes have ended and give those that have not. Blocks; they need not be ours.

    Open the wait before the processes can end and their numbers be given away again.
    """
    wanted = set(pids)
    if not hasattr(os, "pidfd_open"):
        found = [psutil.Process(pid) for pid in wanted if psutil.pid_exists(pid)]
        return {process.pid for process in psutil.wait_procs(found, timeout=timeout_s)[1]}
    with ExitStack() as open_files:
        waiting: dict[int, int] = {}
        for pid in living(wanted):
            with suppress(ProcessLookupError):
                file = os.pidfd_open(pid)
                open_files.callback(os.close, file)
                waiting[file] = pid
        return _wait_readable(waiting, timeout_s=timeout_s)


def _wait_readable(waiting: dict[int, int], *, timeout_s: float) -> set[int]:
    """Drop each process whose descriptor becomes readable, which it does when the process ends."""
    poll = select.poll()
    for file in waiting:
        poll.register(file, select.POLLIN)
    deadline = time.monotonic() + timeout_s
    while waiting and (left := deadline - time.monotonic()) > 0:
        for file, _ in poll.poll(left * 1000):
            poll.unregister(file)
            del waiting[file]
    return set(waiting.values())


def resident_bytes(pid: int) -> int:
    """Give the memory that a process holds."""
    return psutil.Process(pid).memory_info().rss


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def _carriers(marks: Sequence[str], *, below: int | None) -> set[int]:
    among = psutil.pids() if below is None else descendants(below)
    return {pid for pid in among if pid != os.getpid() and _carries(pid, marks)}


def _carries(pid: int, marks: Sequence[str]) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        variables = (f"{name}={value}" for name, value in process.environ().items())
        words = [*process.cmdline(), *variables]
        return all(any(mark in word for word in words) for mark in marks)
    return False
