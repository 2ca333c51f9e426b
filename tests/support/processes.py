"""Looks at the processes of the machine: who descends from whom, who carries a mark, who is gone."""

import os
import select
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress

import psutil

USUAL_S = 10.0


def descendants(pid: int) -> set[int]:
    """Give the living processes below one; children that moved to another parent are not among them."""
    with suppress(psutil.NoSuchProcess):
        return living(child.pid for child in psutil.Process(pid).children(recursive=True))
    return set()


def processes_with(mark: str) -> set[int]:
    """Give the living processes, except this one, that carry a mark in their arguments or environment.

    A mark in the environment is inherited, so it also finds what a tool left behind in another session.
    """
    return {
        process.pid
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _carries(process, mark)
    }


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


def _carries(process: psutil.Process, mark: str) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if any(mark in argument for argument in process.cmdline()):
            return True
        return any(mark in f"{name}={value}" for name, value in process.environ().items())
    return False
