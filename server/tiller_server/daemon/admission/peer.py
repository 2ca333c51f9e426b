"""Process at the other end of a socket, and whether a tool of ours has started it. Blocking."""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_core.workspace.processes.mark import LEAST_LIMIT, MARK, limit_of
from tiller_server.lsp.transport.stdio import EXHAUSTED

PROC: Final = Path("/proc")
FARTHEST: Final = 256
"""So many ancestors are looked at: no real process has more."""
_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2
_SOL_LOCAL: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A process that has connected."""

    uid: int
    pid: int | None
    """None: the system does not tell."""


def peer_of(sock: socket.socket) -> Peer:
    """Ask the system who has connected.

    Raises:
        OSError: It does not tell.
    """
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", credentials)
        return Peer(uid=uid, pid=pid)
    # struct xucred: version, uid, number of groups, groups
    credentials = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)
    uid = struct.unpack_from("II", credentials)[1]
    pid: int | None = None
    if sys.platform == "darwin":
        with suppress(OSError):
            pid = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
    return Peer(uid=uid, pid=pid)


class Lineage:
    """Knows a tool's processes: by their ancestors, and by the marks that every command carries.

    Where there is no /proc nothing is known of ancestors; the user and the token are all that is checked there.
    """

    def __init__(self) -> None:
        self._own = os.getpid()
        # A daemon that was started inside of another Tiller's tool carries that one's marks, as its editors do.
        self._limit = limit_of(0)
        self._mark = _mark_of(self._own)
        self._space = _space_of(self._own)

    def objection(self, pid: int) -> str | None:
        """Return the reason for which a process may come from a tool; None when there is none."""
        if sys.platform != "linux":
            return None
        if pid <= 0:
            return "it is in a process namespace that is not seen from here"
        if not (PROC / str(pid)).exists():
            return "it has ended already"
        if (space := _space_of(pid)) is not None and self._space not in {None, space}:
            return "it is in another process namespace"
        found = (self._objection_to(one) for one in _line(pid))
        try:
            return next((why for why in found if why is not None), None)
        except OSError as error:
            return f"its ancestors cannot be read ({error.strerror})"

    def _objection_to(self, ancestor: int) -> str | None:
        if ancestor == self._own:
            return "a tool has started it"
        if self._is_marked(ancestor):
            return f"it carries the mark of a tool (process {ancestor})"
        return None

    def _is_marked(self, pid: int) -> bool:
        limit = limit_of(pid)
        if limit is not None and LEAST_LIMIT <= limit < 2 * LEAST_LIMIT and limit != self._limit:
            return True
        mark = _mark_of(pid)
        return bool(mark) and mark != self._mark


def _line(pid: int) -> Iterator[int]:
    """Return a process and its ancestors, the nearest first."""
    for _ in range(FARTHEST):
        if pid <= 1:
            return
        yield pid
        pid = _parent_of(pid)


def _parent_of(pid: int) -> int:
    with suppress(ValueError, IndexError):
        # The name stands in brackets and may hold anything, brackets too.
        after = _read(pid, "stat").rpartition(b")")[2]
        return int(after.split()[1])
    return 0


def _mark_of(pid: int) -> bytes:
    for one in _read(pid, "environ").split(b"\0"):
        name, _, value = one.partition(b"=")
        if name == MARK.encode():
            return value
    return b""


def _read(pid: int, name: str) -> bytes:
    """Read a file of a process in /proc; empty when the process has ended or is hidden from us.

    Raises:
        OSError: The system has no descriptors or memory left. The client must not be admitted for that.
    """
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise
        return b""


def _space_of(pid: int) -> str | None:
    with suppress(OSError):
        return str((PROC / str(pid) / "ns" / "pid").readlink())
    return None
