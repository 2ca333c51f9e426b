"""Finds and ends everything that one command started, also what hides in other sessions. Blocking.

A process belongs to a tree when it is in the first process's session, when its parent belongs, or when it was
started with the tree's mark in its environment: `setsid`, `nohup` and a double fork take away the first two.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agent_core.workspace.port import Killed

MARK = "TILLER_PROCESS_ID"
"""The variable that holds the mark."""
PROC = "/proc"
POLL_S = 0.005
KILL_LIMIT_S = 5.0
"""How long to go on killing what does not go."""
DEAD = frozenset({"Z", "X"})


@dataclass(frozen=True, slots=True)
class Member:
    """A living process; the start tells it from a later one with the same number."""

    pid: int
    started: float
    parent: int
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """How to recognise the processes of one command."""

    first: int
    """The id of its first process, which leads the session."""
    mark: str
    reaped: bool = False
    """The first process has been waited for, so that its number may belong to another one."""

    def members(self) -> Mapping[int, Member]:
        """Look for the living processes of the tree."""
        living = living_processes(since=self.first)
        found = {
            pid: member
            for pid, member in living.items()
            if self._in_session(member) or self._is_marked(pid)
        }
        grown = True
        while grown:
            children = {
                pid: member
                for pid, member in living.items()
                if pid not in found and member.parent in found
            }
            found |= children
            grown = bool(children)
        return found

    def _in_session(self, member: Member) -> bool:
        return not self.reaped and member.session == self.first

    def _is_marked(self, pid: int) -> bool:
        return self.mark.encode() in environment_of(pid)


def end_tree(tree: Tree, *, grace_s: float) -> Killed:
    """Ask every process of a tree to end, and kill what is left after the grace.

    Returns when none is left, at the latest 5 s after the grace.
    """
    asked = tree.members()
    if not asked:
        return Killed(pids=(), survivors=())
    ended = dict(asked)
    for number in (signal.SIGTERM, signal.SIGINT):
        _send(asked.values(), number)
    left = _wait_for_none(tree, seconds=grace_s)
    limit_s = time.monotonic() + KILL_LIMIT_S
    while left and time.monotonic() < limit_s:
        ended |= left
        if not tree.reaped:
            with contextlib.suppress(OSError):
                # One call that no member of the group can run away from by forking.
                os.killpg(tree.first, signal.SIGKILL)
        _send(left.values(), signal.SIGKILL)
        left = _wait_for_none(tree, seconds=4 * POLL_S)
    survivors = tuple(sorted(left))
    return Killed(pids=tuple(sorted(ended.keys() - left.keys())), survivors=survivors)


def _wait_for_none(tree: Tree, *, seconds: float) -> Mapping[int, Member]:
    """Wait until no process is left, and give those that are when the time is over."""
    limit_s = time.monotonic() + seconds
    while (left := tree.members()) and time.monotonic() < limit_s:
        time.sleep(POLL_S)
    return left


def _send(members: Iterable[Member], number: signal.Signals) -> None:
    for member in members:
        with contextlib.suppress(OSError):
            _send_one(member, number)


if sys.platform == "linux":

    def living_processes(*, since: int) -> Mapping[int, Member]:
        """Give the living processes that may be younger than a process."""
        names = [int(name) for name in os.listdir(PROC) if name.isdigit()]
        if _newest() >= since:
            # Ids are given out upwards: only after a wrap can a younger process have a smaller one.
            names = [pid for pid in names if pid >= since]
        return {pid: member for pid in names if (member := _look(pid)) is not None}

    def environment_of(pid: int) -> bytes:
        """Give the environment that a process was started with; nothing if that is not for us to know."""
        return _read(f"{PROC}/{pid}/environ")

    def _send_one(member: Member, number: signal.Signals) -> None:
        opened = os.pidfd_open(member.pid)
        try:
            # Open first, compare then: now the number cannot come to mean another process.
            now = _look(member.pid)
            if now is not None and now.started == member.started:
                signal.pidfd_send_signal(opened, number)
        finally:
            os.close(opened)

    def _newest() -> int:
        words = _read(f"{PROC}/loadavg").split()
        return int(words[-1]) if words else 0

    def _look(pid: int) -> Member | None:
        # The name stands in brackets and may hold anything, brackets too.
        words = _read(f"{PROC}/{pid}/stat").rpartition(b")")[2].split()
        if not words or words[0].decode() in DEAD:
            return None
        return Member(pid, started=int(words[19]), parent=int(words[1]), session=int(words[3]))

    def _read(path: str) -> bytes:
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - the quick way, for thousands of files
                return file.readall()
        except OSError:
            return b""

else:

    def living_processes(*, since: int) -> Mapping[int, Member]:
        """Give the living processes."""
        _ = since
        import psutil  # noqa: PLC0415 - slow to import, and only wanted when something is to be ended

        found: dict[int, Member] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError), process.oneshot():
                if process.status() != psutil.STATUS_ZOMBIE:
                    found[process.pid] = Member(
                        process.pid,
                        started=process.create_time(),
                        parent=process.ppid() or 0,
                        session=os.getsid(process.pid),
                    )
        return found

    def environment_of(pid: int) -> bytes:
        """Give the environment that a process was started with; nothing if that is not for us to know."""
        import psutil  # noqa: PLC0415 - slow to import, and only wanted when something is to be ended

        with contextlib.suppress(psutil.Error, OSError):
            return psutil.Process(pid).environ().get(MARK, "").encode()
        return b""

    def _send_one(member: Member, number: signal.Signals) -> None:
        import psutil  # noqa: PLC0415 - slow to import, and only wanted when something is to be ended

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(member.pid)
            if process.create_time() == member.started:
                process.send_signal(number)
