"""Ends everything in a process namespace: with its first process all the others are gone, whatever they do. Blocking."""

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import ESRCH
from pathlib import Path

from agent_core.workspace.port import KillReport
from agent_core.workspace.processes.tree import POLL_S, Member, ProcessTree, ask_to_end, end_tree

GONE_MS = 5_000
"""How long the kernel may take to end a namespace."""
REPORT_S = 1.0
"""How long the keeper may take to report the end of its command."""


def end_kept(tree: ProcessTree, *, is_over: bool, was_alone: bool, grace_s: float) -> KillReport:
    """End a contained command: signal its processes, and end the namespace after the grace period.

    Three processes are ours and are not reported: bubblewrap, the init of its namespace, and the keeper.

    Args:
        tree: Process tree of bubblewrap; not reaped yet.
        is_over: The command itself has ended.
        was_alone: The command left nothing running when it ended.
        grace_s: Time that the signalled processes have to end.
    """
    init = _child_of(tree.first)
    if init is None:
        # It has just been started, or has just ended.
        killed = end_tree(tree, grace_s=grace_s)
        return KillReport(pids=() if is_over else (tree.first,), survivors=killed.survivors)
    with suppress(ProcessLookupError, PermissionError):
        opened = os.pidfd_open(init)
        try:
            pids = () if was_alone else _asked(tree, init, is_over=is_over, grace_s=grace_s)
            return _ended(tree, opened, pids)
        finally:
            os.close(opened)
    return KillReport(pids=(), survivors=())


def mounts_inside(first: int) -> bytes:
    """Return what is mounted in the namespace of a contained command, as the kernel writes it.

    Args:
        first: The process that was started.

    Raises:
        OSError: It has ended.
    """
    init = _child_of(first)
    if init is None:
        raise ProcessLookupError(ESRCH, os.strerror(ESRCH))
    return Path(f"/proc/{init}/mountinfo").read_bytes()


def _asked(tree: ProcessTree, init: int, *, is_over: bool, grace_s: float) -> tuple[int, ...]:
    def theirs() -> Mapping[int, Member]:
        return _without_ours(tree.members(), first=tree.first, init=init)

    found, left = ask_to_end(tree, theirs, grace_s=grace_s)
    # Killed earlier, the keeper could not report the exit code of a command that has ended by itself.
    while not left and not _has_reported(init, theirs):
        begun, left = ask_to_end(tree, theirs, grace_s=grace_s)
        found |= begun
    if is_over:
        return tuple(sorted(found))
    # For whoever started it, the command is the process that they were given.
    command = min(found, key=lambda pid: (found[pid].started, pid), default=0)
    return tuple(sorted((found.keys() - {command}) | {tree.first}))


def _has_reported(init: int, theirs: Callable[[], Mapping[int, Member]]) -> bool:
    """Wait until the keeper has written its report: it then ends, or stops itself.

    Returns False as soon as there is a process of the command, which had not begun before.
    """
    limit_s = time.monotonic() + REPORT_S
    while (keeper := _child_of(init)) is not None and time.monotonic() < limit_s:
        if _state_of(keeper) in ("T", "Z", None):
            return True
        if theirs():
            return False
        time.sleep(POLL_S)
    return True


def _ended(tree: ProcessTree, init: int, pids: tuple[int, ...]) -> KillReport:
    """Kill the init of a namespace; it is only gone when all others are."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(init, signal.SIGKILL)
    poll = select.poll()
    poll.register(init, select.POLLIN)
    if poll.poll(GONE_MS):
        return KillReport(pids=pids, survivors=())
    left = tuple(sorted(tree.members()))
    return KillReport(pids=tuple(pid for pid in pids if pid not in left), survivors=left)


def _without_ours(members: Mapping[int, Member], *, first: int, init: int) -> Mapping[int, Member]:
    children = [one for one in members.values() if one.parent == init]
    keeper = min(children, key=lambda one: (one.started, one.pid), default=None)
    ours = {first, init, keeper.pid if keeper else init}
    return {pid: one for pid, one in members.items() if pid not in ours}


def _state_of(pid: int) -> str | None:
    """Return the state of a process as in proc_pid_stat(5); None: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[0]


def _child_of(pid: int) -> int | None:
    try:
        child_pids = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    except OSError:
        return None
    return int(child_pids[0]) if child_pids else None
