"""Looks for the daemon until it answers, and starts one where there is none."""

from _socket import socket
from collections.abc import Callable, Mapping

from tiller_server.daemon.shim.connection import Unreachable, call
from tiller_server.daemon.shim.spawn import SpawnedDaemon, start_daemon

LOOK_S = 0.005
"""One look costs some 0.05 ms; the first seconds are those in which an editor waits."""
LATER_S = 0.05
SOON_S = 3.0
FIRST_WAIT_S = 0.05
MAX_WAIT_S = 2.0


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
