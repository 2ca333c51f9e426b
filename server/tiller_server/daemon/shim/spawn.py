"""Starts a daemon that outlives who started it, and hears what it says until it serves."""

import os
import sys

from tiller_server.daemon.shim.connection import Unreachable

_SAID_BYTES = 16 * 1024
_LEAKED = 1024
"""Descriptors below this may have come from an editor that did not close them: its pipes must not stay open."""


class SpawnedDaemon:
    """A daemon that begins to serve, leaves because another one does, or cannot be."""

    def __init__(self, fd: int) -> None:
        """Listen.

        Args:
            fd: Its standard error, which ends when it ends; owned from now on.
        """
        self.fd = fd
        self.has_ended = False
        self._said = b""
        os.set_blocking(fd, False)

    @property
    def last_line(self) -> str:
        """The last line that it said; empty when it said nothing."""
        lines = self._said.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def hear(self) -> None:
        """Read the output of the daemon so far, and record whether it has ended. Does not wait for more."""
        try:
            while data := os.read(self.fd, _SAID_BYTES):
                self._said = (self._said + data)[-_SAID_BYTES:]
            self.has_ended = True
        except BlockingIOError:
            return

    def close(self) -> None:
        """Close the pipe; later output of the daemon on standard error is lost."""
        os.close(self.fd)


def start_daemon() -> SpawnedDaemon:
    """Start one, in a session of its own.

    Raises:
        Unreachable: The system does not let us.
    """
    if not sys.executable:
        raise Unreachable("this Python does not know its own program, so none can be started")
    read_fd, write_fd = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        os.close(read_fd)
        os.close(write_fd)
        message = f"no process can be started ({error.strerror})"
        raise Unreachable(message) from error
    if child == 0:
        _become_daemon(write_fd)
    os.close(write_fd)
    os.waitpid(child, 0)
    return SpawnedDaemon(read_fd)


def _become_daemon(stderr_fd: int) -> None:
    """Run the daemon in a grandchild: editors end a server with all of its children, and this is none of them."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd, place in ((nothing, 0), (nothing, 1), (stderr_fd, 2)):
            os.dup2(fd, place)
        os.closerange(3, _LEAKED)
        # Isolated: a folder that holds its own `tiller_server` or `json.py` is never imported.
        os.execv(sys.executable, [sys.executable, "-I", "-m", "tiller_server.daemon"])  # noqa: S606 - ourselves
    finally:
        os._exit(127)
