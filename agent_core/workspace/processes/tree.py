"""Finds and ends everything that one command started, also what hides in other sessions. Blocking.

A process belongs to a tree when it is in the first process's session, when its parent belongs, or when it carries
the tree's mark: `setsid`, `nohup` and a double fork take away the first two.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol

from agent_core.kernel.values import Value
from agent_core.workspace.port import KillReport
from agent_core.workspace.processes.mark import ProcessMark

INIT = 1
"""The process that orphans are given to."""
POLL_S = 0.005
KILL_LIMIT_S = 5.0
"""How long to go on killing what does not go."""


class Member(Value, frozen=True):
    """A living process; the start tells it from a later one with the same number."""

    pid: int
    started: float
    parent: int
    session: int


class ProcessTable(Protocol):
    """The processes of this machine."""

    def is_newest(self, pid: int) -> bool:
        """Return whether no process has been started after this one, which is there or a zombie.

        False where that is unknown. Does not block.
        """
        ...

    def living(self, *, first: int, age_s: float) -> Mapping[int, Member]:
        """Return those that live and may have been started after the one with this id, itself too.

        Args:
            first: Not reaped yet, so that nobody else has its id; 0: give all.
            age_s: How long ago it was started.
        """
        ...

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process that lives or is a zombie; None: it is gone, or not visible."""
        ...

    def carries(self, pid: int, mark: ProcessMark) -> Literal["limit", "variable"] | None:
        """Return how a process carries a mark: by limit or by environment variable; None: not, or not visibly."""
        ...

    def send(self, member: Member, number: signal.Signals) -> None:
        """Send a signal to this very process, if it is still there and ours."""
        ...


class ProcessTree(Value, frozen=True, kw_only=True):
    """How to recognise the processes of one command."""

    table: ProcessTable
    first: int
    """The id of its first process, which leads the session."""
    mark: ProcessMark
    begun_s: float
    """When it was started, by the monotonic clock."""
    reaped: bool = False
    """The first process has been waited for, so that its number may belong to another one."""

    def members(self) -> Mapping[int, Member]:
        """Look for the living processes of the tree."""
        first = 0 if self.reaped else self.first
        living = self.table.living(first=first, age_s=time.monotonic() - self.begun_s)
        found = {pid: member for pid, member in living.items() if self._is_member(member)}
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

    def _is_member(self, member: Member) -> bool:
        if member.pid == os.getpid():
            return False
        if not self.reaped and member.session == self.first:
            return True
        match self.table.carries(member.pid, self.mark):
            case "variable":
                return True
            case "limit":
                # What another thread of ours starts at the same moment inherits the limit as well. Children of
                # ours besides the first process are never this tree's, unless orphans are given to us; nor is
                # what those children start.
                return os.getpid() == INIT or not self._is_under_another_child(member)
            case None:
                return False

    def _is_under_another_child(self, member: Member) -> bool:
        """Return whether a process descends from a child of ours that is not the first process."""
        pid, parent = member.pid, member.parent
        seen = {pid}
        while parent and parent not in seen and parent != INIT:
            if parent == os.getpid():
                return self.reaped or pid != self.first
            seen.add(pid := parent)
            parent = self.table.parent(pid)
        return False


def end_tree(tree: ProcessTree, *, grace_s: float) -> KillReport:
    """Signal every process of a tree to end, and kill the rest after the grace period.

    A process that ignores the first signal is sent another one at half the time: some programs obey only that.
    Both at once would interrupt programs that are still cleaning up after the first.

    Returns when no process is left, at the latest 5 s after the grace period.
    """
    ended, left = ask_to_end(tree, tree.members, grace_s=grace_s)
    limit_s = time.monotonic() + KILL_LIMIT_S
    while left and time.monotonic() < limit_s:
        ended |= left
        if not tree.reaped:
            with contextlib.suppress(OSError):
                # One call that no member of the group can run away from by forking.
                os.killpg(tree.first, signal.SIGKILL)
        _send(tree, left.values(), signal.SIGKILL)
        left = _wait_for_none(tree.members, seconds=4 * POLL_S)
    survivors = tuple(sorted(left))
    return KillReport(pids=tuple(sorted(ended.keys() - left.keys())), survivors=survivors)


def ask_to_end(
    tree: ProcessTree, members: Callable[[], Mapping[int, Member]], *, grace_s: float
) -> tuple[dict[int, Member], Mapping[int, Member]]:
    """Ask processes to end, and give all that were seen, and those that are left after the grace.

    Args:
        tree: Sends the signals.
        members: Looks for those that are to end.
        grace_s: How long they have.
    """
    left = members()
    seen = dict(left)
    for number in (signal.SIGTERM, signal.SIGINT):
        if left:
            _send(tree, left.values(), number)
            left = _wait_for_none(members, seconds=grace_s / 2)
            seen |= left
    return seen, left


def _wait_for_none(
    members: Callable[[], Mapping[int, Member]], *, seconds: float
) -> Mapping[int, Member]:
    """Wait until no process is left, and give those that are when the time is over."""
    limit_s = time.monotonic() + seconds
    while (left := members()) and time.monotonic() < limit_s:
        time.sleep(POLL_S)
    return left


def _send(tree: ProcessTree, members: Iterable[Member], number: signal.Signals) -> None:
    for member in members:
        tree.table.send(member, number)
