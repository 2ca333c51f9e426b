"""The processes of a Linux machine, read from /proc."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent_core.workspace.adapters.process_tree import Member

PROC = Path("/proc")
DEAD = frozenset({b"Z", b"X"})


class ProcTable:
    """Reads few files and sends signals to descriptors, which never mean another process."""

    def living(self, *, since: int) -> Mapping[int, Member]:
        """Give the living processes that may be younger than a process."""
        pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - strings, often
        if _newest() >= since:
            # Ids are given out upwards: only after a wrap can a younger process have a smaller one.
            pids = [pid for pid in pids if pid >= since]
        return {pid: member for pid in pids if (member := _look(pid)) is not None}

    def environment(self, pid: int) -> bytes:
        """Give what a process was started with."""
        return _read(f"{pid}/environ")

    def send(self, member: Member, number: signal.Signals) -> None:
        """Send a signal."""
        with suppress(OSError):
            opened = os.pidfd_open(member.pid)
            try:
                # Opened first and compared then: now the number cannot come to mean another process.
                now = _look(member.pid)
                if now is not None and now.started == member.started:
                    signal.pidfd_send_signal(opened, number)
            finally:
                os.close(opened)


def _newest() -> int:
    words = _read("loadavg").split()
    return int(words[-1]) if words else 0


def _look(pid: int) -> Member | None:
    # The name stands in brackets and may hold anything, brackets too.
    words = _read(f"{pid}/stat").rpartition(b")")[2].split()
    if not words or words[0] in DEAD:
        return None
    return Member(pid, started=int(words[19]), parent=int(words[1]), session=int(words[3]))


def _read(name: str) -> bytes:
    try:
        return (PROC / name).read_bytes()
    except OSError:
        return b""
