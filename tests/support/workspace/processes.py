"""Looks at the processes of the machine: who descends from whom, who carries a mark, who is gone."""

import os
import select
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import chain

import psutil

USUAL_S = 10.0
LOOK_AGAIN_S = 0.01
KEPT = 3
"""So many processes wait for one command: bubblewrap, the init of its namespace, and the keeper."""
KEEPER_WORDS = 5
"""So many words a keeper has from its name on, without a command."""


def descendants(pid: int) -> set[int]:
    """Give the living processes below one; children that moved to another parent are not among them."""
    with suppress(psutil.NoSuchProcess):
        return living(child.pid for child in psutil.Process(pid).children(recursive=True))
    return set()


def processes_with(
    *marks: str, below: int | None = None, at_least: int = 0, timeout_s: float = USUAL_S
) -> set[int]:
    """Give the living processes, except this one, that carry every mark in their arguments or environment.

    A mark in the environment is inherited, so it also finds what a tool left behind in another session. What waits for
    the next contained command is no remainder of the last one, and not among them (`waiting_with`).

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


def waiting_with(mark: str, *, count: int = KEPT, timeout_s: float = USUAL_S) -> set[int]:
    """Wait until so many processes with a mark wait for the next contained command, and give them. Blocks.

    Raises:
        TimeoutError: There are more or fewer after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while len(found := _waiting(mark)) != count:
        if time.monotonic() > deadline:
            message = f"{len(found)} processes wait for a command after {timeout_s} s, not {count}"
            raise TimeoutError(message)
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


def _waiting(mark: str) -> set[int]:
    words = {pid: _words(pid) for pid in psutil.pids() if pid != os.getpid()}
    return {pid for pid, said in words.items() if _waits(said[0]) and _marked(said, [mark])}


def _waits(arguments: Sequence[str]) -> bool:
    """Whether a process was started as one that keeps a command, without the command."""
    return list(arguments[-KEEPER_WORDS : -KEEPER_WORDS + 1]) == ["keeper"]


def _carriers(marks: Sequence[str], *, below: int | None) -> set[int]:
    if below is None:
        there = {pid: _words(pid) for pid in psutil.pids() if pid != os.getpid()}
        return {pid for pid, said in there.items() if not _waits(said[0]) and _marked(said, marks)}
    # Between fork and exec a child shows its parent's arguments: what a child carries and whether it is such a copy
    # is judged by one reading of it, and the parent is read before and after, as it may be between the two itself.
    before = _arguments(below)
    words = {pid: _words(pid) for pid in descendants(below)}
    own = (before, _arguments(below))
    return {
        pid
        for pid, said in words.items()
        if said[0] not in own and not _waits(said[0]) and _marked(said, marks)
    }


def _arguments(pid: int) -> list[str]:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return psutil.Process(pid).cmdline()
    return []


def _words(pid: int) -> tuple[list[str], list[str]]:
    """Give the arguments and the environment of a process; both are empty when it is a zombie or gone."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            # The environment first: what is replaced between the two readings has new arguments.
            variables = [f"{name}={value}" for name, value in process.environ().items()]
            return process.cmdline(), variables
    return [], []


def _marked(said: tuple[list[str], list[str]], marks: Sequence[str]) -> bool:
    return all(any(mark in word for word in chain(*said)) for mark in marks)
