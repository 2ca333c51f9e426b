"""Process that an editor starts: relays messages to the daemon, and finds or starts another one when it has died.

Of the standard library, only modules that the interpreter has loaded anyway are imported before the first byte is
relayed: `socket`, `signal`, `json` and `typing` would cost an editor 30 ms. See decision 0025.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping

from tiller_server.daemon.shim.connection import handshake_line
from tiller_server.daemon.shim.discovery import DaemonDiscovery
from tiller_server.daemon.shim.endpoints import EditorEnd
from tiller_server.daemon.shim.proxy import LspProxy
from tiller_server.daemon.shim.relay import Relay, RelayServices, Unserved

__all__ = ["Unserved", "serve"]


class StopSignals:
    """Notices the signals that ask for the end."""

    def __init__(self) -> None:
        self._code: int | None = None
        self.wake_fd, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self.wake_fd, False)

    def begin(self) -> None:
        """Install the signal handlers; before that a signal ends the process, which has nothing to clean up."""
        import signal  # noqa: PLC0415 - costs 5 ms, which the first answer need not wait for

        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)

    def code(self) -> int | None:
        """Return the exit code that a signal has asked for."""
        return self._code

    def _take(self, number: int, _frame: object) -> None:
        self._code = 128 + number


def serve(env: Mapping[str, str], *, cwd: str, note: Callable[[str], None]) -> int:
    """Serve the editor on standard input and output through the daemon; gives the exit code.

    Args:
        env: The environment of the editor.
        cwd: The folder it started us in.
        note: Takes a sentence for the log.

    Raises:
        Unserved: There is no daemon for it; nothing was said to the editor yet.
        OSError: Standard input or output is closed.
    """
    check_platform()
    pid = os.getpid()

    def introduce(token: str) -> bytes:
        return handshake_line(env, token=token, cwd=cwd, pid=pid)

    stop = StopSignals()
    means = relay_services(env, introduce=introduce, note=note, stop=stop)
    search = DaemonDiscovery(env, clock=means.clock)
    relay = Relay(EditorEnd(), search, means, proxy=LspProxy(note=note))
    return relay.run(stopped=stop.code, wake_fd=stop.wake_fd)


def check_platform() -> None:
    """Check that there can be a daemon.

    Raises:
        Unserved: There can be none on this system.
    """
    if sys.platform == "win32":
        raise Unserved("there is none on Windows yet", first_bytes=b"", code="windows")


def relay_services(
    env: Mapping[str, str],
    *,
    introduce: Callable[[str], bytes],
    note: Callable[[str], None],
    stop: StopSignals,
) -> RelayServices:
    """Return what a relay needs of this process.

    Args:
        env: The environment of the editor.
        introduce: Creates the first line for a daemon from its token.
        note: Takes a sentence for the log.
        stop: The signals that end it.
    """

    def settle() -> None:
        from tiller_server.process import memory_privacy  # noqa: PLC0415 - costs as much as all the rest

        # Its log is not Python's, which costs too much here.
        if memory_privacy.allows_debugger(env):
            note(memory_privacy.ATTACHABLE)
        else:
            memory_privacy.forbid_ptrace(env)
        stop.begin()

    return RelayServices(introduce=introduce, note=note, settle=settle, clock=time.monotonic)
