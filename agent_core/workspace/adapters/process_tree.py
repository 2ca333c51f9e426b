"""Finds and ends everything that one command started, also what hides in other sessions. Blocking.

A process belongs to a tree when it is in the first process's session, when its parent belongs, or when it was
started with the tree's mark in its environment: `setsid`, `nohup` and a double fork take away the first two.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agent_core.workspace.port import Killed

MARK = "TILLER_PROCESS_ID"
"""The variable that holds the mark."""
POLL_S = 0.005
KILL_LIMIT_S = 5.0
"""How long to go on killing what does not go."""


@dataclass(frozen=True, slots=True)
class Member:
    """A living process; the start tells it from a later one with the same number."""

    pid: int
    started: float
    parent: int
    session: int


class ProcessTable(Protocol):
    """The processes of this machine."""

    def living(self, *, since: int) -> Mapping[int, Member]:
        """Give those that live and may be younger than the one with this id."""
        ...

    def environment(self, pid: int) -> bytes:
        """Give what a process was started with; nothing if that is not for us to know."""
        ...

    def send(self, member: Member, number: signal.Signals) -> None:
        """Send a signal to this very process, if it is still there and ours."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """How to recognise the processes of one command."""

    table: ProcessTable
    first: int
    """The id of its first process, which leads the session."""
    mark: str
    reaped: bool = False
    """The first process has been waited for, so that its number may belong to another one."""

    def members(self) -> Mapping[int, Member]:
        """Look for the living processes of the tree."""
        living = self.table.living(since=self.first)
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
        return self.mark.encode() in self.table.environment(pid)


def end_tree(tree: Tree, *, grace_s: float) -> Killed:
    """Ask every process of a tree to end, and kill what is left after the grace.

    Returns when none is left, at the latest 5 s after the grace.
    """
    asked = tree.members()
    if not asked:
        return Killed(pids=(), survivors=())
    ended = dict(asked)
    for number in (signal.SIGTERM, signal.SIGINT):
        _send(tree, asked.values(), number)
    left = _wait_for_none(tree, seconds=grace_s)
    limit_s = time.monotonic() + KILL_LIMIT_S
    while left and time.monotonic() < limit_s:
        ended |= left
        if not tree.reaped:
            with contextlib.suppress(OSError):
                # One call that no member of the group can run away from by forking.
                os.killpg(tree.first, signal.SIGKILL)
        _send(tree, left.values(), signal.SIGKILL)
        left = _wait_for_none(tree, seconds=4 * POLL_S)
    survivors = tuple(sorted(left))
    return Killed(pids=tuple(sorted(ended.keys() - left.keys())), survivors=survivors)


def _wait_for_none(tree: Tree, *, seconds: float) -> Mapping[int, Member]:
    """Wait until no process is left, and give those that are when the time is over."""
    limit_s = time.monotonic() + seconds
    while (left := tree.members()) and time.monotonic() < limit_s:
        time.sleep(POLL_S)
    return left


def _send(tree: Tree, members: Iterable[Member], number: signal.Signals) -> None:
    for member in members:
        tree.table.send(member, number)
