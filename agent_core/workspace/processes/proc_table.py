"""The processes of a Linux machine, read from /proc."""

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_core.workspace.processes.mark import UNLIMITED, ProcessMark, limit_of

if TYPE_CHECKING:
    from agent_core.workspace.processes.tree import Member


PROC = Path("/proc")
DEAD = frozenset({b"Z", b"X"})
MAX_IDS_PER_S = 200_000
"""More processes than any machine starts in a second."""
LOOKS = 100
"""How often at most a look is completed, on a machine that starts processes all the time."""
LEAST_IDS = 32_768
"""How many ids there are where the system does not tell."""


class ProcTable:
    """Reads few files and sends signals to descriptors, which never mean another process."""

    def is_newest(self, pid: int) -> bool:
        """Return whether no process has been started after a living one or zombie: the kernel's word, at once."""
        return _newest() == pid

    def living(self, *, first: int, age_s: float) -> "Mapping[int, Member]":
        """Return the living processes that may have been started after another one."""
        newest = _newest()
        if newest == first:
            return _look_at([first])
        found = _look_at(self._candidates(first, newest=newest, age_s=age_s))
        for _ in range(LOOKS):
            # Who ended during the look may have started another one behind its back.
            now = _newest()
            if now == newest:
                break
            found |= _look_at([pid for pid in _ids() if now < newest or pid > newest])
            newest = now
        return found

    def _candidates(self, first: int, *, newest: int, age_s: float) -> list[int]:
        if newest < first or age_s > self._round_s:
            return _ids()
        # Ids are given out upwards, so a younger process has a smaller one only after they began anew.
        return [pid for pid in _ids() if pid >= first]

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process that lives or is a zombie; None: it is gone, or not visible."""
        fields = _stat(pid)
        return int(fields[1]) if fields else None

    def carries(self, pid: int, mark: ProcessMark) -> Literal["limit", "variable"] | None:
        """Return how a process carries a mark: by limit or by environment variable; None: not, or not visibly."""
        limit = limit_of(pid)
        if mark.limit is not None:
            if limit == mark.limit:
                return "limit"
            if limit is None or limit == UNLIMITED:
                return None  # foreign: its environment need not be read, or cannot be
        return "variable" if mark.text.encode() in _read(f"{pid}/environ") else None

    def send(self, member: "Member", number: signal.Signals) -> None:
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

    @cached_property
    def _round_s(self) -> float:
        """How long it takes at least until all ids have been given out."""
        text = _read("sys/kernel/pid_max").strip()
        return (int(text) if text.isdigit() else LEAST_IDS) / MAX_IDS_PER_S


def _ids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - strings, often


def _look_at(pids: Iterable[int]) -> "dict[int, Member]":
    return {pid: member for pid in pids if (member := _look(pid)) is not None}


def _newest() -> int:
    fields = _read("loadavg").split()
    return int(fields[-1]) if fields else 0


def _look(pid: int) -> "Member | None":
    from agent_core.workspace.processes.tree import Member  # noqa: PLC0415 - at first use

    fields = _stat(pid)
    # A process whose first thread has ended looks dead, and is not while others go on.
    if not fields or (fields[0] in DEAD and int(fields[17]) <= 1):
        return None
    return Member(pid, started=int(fields[19]), parent=int(fields[1]), session=int(fields[3]))


def _stat(pid: int) -> list[bytes]:
    """Return the fields of a process after its name; empty: it is gone."""
    # The name stands in brackets and may hold anything, brackets too.
    return _read(f"{pid}/stat").rpartition(b")")[2].split()


def _read(name: str) -> bytes:
    try:
        opened = os.open(f"/proc/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    parts: list[bytes] = []
    try:
        while part := os.read(opened, 65_536):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(opened)
    return b"".join(parts)
