"""Looks for the daemon until it answers, and starts one where there is none."""

import os
import sys
from _socket import socket
from collections.abc import Callable, Mapping

from tiller_server.daemon.shim.connection import Unreachable, call

LOOK_S = 0.005
"""One look costs some 0.05 ms; the first seconds are those in which an editor waits."""
LATER_S = 0.05
SOON_S = 3.0
FIRST_WAIT_S = 0.05
PREPARE_RUNS = "--prepare-runs"
"""Argument of a daemon that loads what `tiller run` needs before the first one comes."""
MAX_WAIT_S = 2.0

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


def start_daemon(*arguments: str) -> SpawnedDaemon:
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
        _become_daemon(write_fd, arguments)
    os.close(write_fd)
    os.waitpid(child, 0)
    return SpawnedDaemon(read_fd)


def _become_daemon(stderr_fd: int, arguments: tuple[str, ...]) -> None:
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
        command = [sys.executable, "-I", "-m", "tiller_server.daemon", *arguments]
        os.execv(sys.executable, command)  # noqa: S606 - ourselves
    finally:
        os._exit(127)


class DaemonDiscovery:
    """One search at a time: `begin`, then `look` until it gives a socket."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        clock: Callable[[], float],
        start: Callable[[], SpawnedDaemon] = start_daemon,
    ) -> None:
        """Search for nothing yet.

        Args:
            env: Says where the daemon is.
            clock: Seconds that only go forward.
            start: Starts a daemon.
        """
        self._env = env
        self._clock = clock
        self._start = start
        self._wait_s = FIRST_WAIT_S
        self._began = self._until = self._look_at = self._start_at = 0.0
        self._gives_up_early = True
        self.started: SpawnedDaemon | None = None
        """A daemon of ours that does not serve yet."""

    def begin(self, *, within_s: float, after_s: float | None = None) -> None:
        """Begin to search.

        Args:
            within_s: Give up after so long.
            after_s: How long the daemon served that was lost, 0 if it refused to; None: it is the first.
        """
        now = self._clock()
        self._began, self._until = now, now + within_s
        self._gives_up_early = after_s is None
        if after_s is not None and after_s > MAX_WAIT_S:
            self._wait_s = FIRST_WAIT_S
        self._look_at = self._start_at = now if after_s is None else now + self._next_wait_s()
        if after_s:
            # Somebody else's editor may have started another one long before we would.
            self._look_at = now

    def look(self) -> tuple[socket, str] | None:
        """Return the socket and the token of a daemon that answers, None when it has to be looked for again.

        Raises:
            Unreachable: There will be none.
        """
        now = self._clock()
        found = call(self._env) if now >= self._look_at else None
        if found is not None:
            self.close()
            return found
        if self.started is not None:
            self._listen(self.started, now)
        elif now >= self._start_at:
            self.started = self._start()
        if now >= self._until:
            self.close()
            message = f"none has answered for {now - self._began:.0f} s"
            raise Unreachable(message)
        return None

    @property
    def again_s(self) -> float:
        """How long to wait until the next look."""
        return LOOK_S if self._clock() - self._began < SOON_S else LATER_S

    def close(self) -> None:
        """Stop listening to the daemon that was started; it continues to run."""
        started, self.started = self.started, None
        if started is not None:
            started.close()

    def _listen(self, started: SpawnedDaemon, now: float) -> None:
        started.hear()
        if not started.has_ended:
            return
        self.close()
        self._start_at = now + self._next_wait_s()
        # One that found another daemon leaves without a word.
        if started.last_line and self._gives_up_early:
            message = f"it cannot be started: {started.last_line}"
            raise Unreachable(message)

    def _next_wait_s(self) -> float:
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, MAX_WAIT_S)
        return wait_s
