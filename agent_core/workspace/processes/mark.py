"""Marks that identify the processes of one command, whatever they have done since.

There are two. The first is a variable in the environment: `env -i` removes it, and it cannot be read for a moment while
a process executes another program. By it a Tiller also finds the processes that a Tiller inside it has started. The
second is a limit of an odd value, which survives `exec`, `fork`, `setsid`, a new parent, a new name, closed descriptors
and an empty environment. Linux has one limit that limits nothing: that of file locks has had no effect since
2.4.25.

Other inherited properties are not suitable: sessions and parents change, descriptors are closed, control groups and
namespaces need rights, only root can read timer slack, priorities and affinities change how a command runs.
A process that means to hide can set the limit anew: the marks keep order, they are no security boundary.
"""

import secrets
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from agent_core.kernel.values import Value

MARK = "TILLER_PROCESS_ID"
"""The variable that holds the mark."""
LOCKS_LIMIT = 10  # decision 0010
"""The number of the limit on Linux; Python has no name for it."""
UNLIMITED = -1
LEAST_LIMIT = 2**61
"""Lowest limit of a mark. No program has such a number by chance."""
# Limits belong to the whole process: while one command is being started, no other one may be.
_STARTING = threading.Lock()


class ProcessMark(Value, frozen=True, kw_only=True):
    """Mark that distinguishes the processes of one command from all others."""

    text: str
    """Somewhere in the variable."""
    limit: int | None
    """The soft limit of file locks; None where the system has none that can be set."""

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Add the variable; an outer mark is kept, since an outer Tiller must find its processes too."""
        return {**env, MARK: f"{env[MARK]}:{self.text}" if MARK in env else self.text}


@contextmanager
def fresh_mark() -> Generator[ProcessMark]:
    """Create a mark; processes started in the context inherit the limit. Blocks while another thread is in it."""
    text = secrets.token_hex(16)
    with _STARTING:
        before = limit_of(0)
        limit = LEAST_LIMIT + secrets.randbelow(LEAST_LIMIT)
        # Set here and taken back, not in the child: code between fork and exec is slow and may deadlock,
        # and setting it from outside afterwards loses the race against a child that forks at once.
        if before is None or not _set_limit(limit):
            limit = None
        try:
            yield ProcessMark(text=text, limit=limit)
        finally:
            if before is not None:
                _set_limit(before)


def limit_of(pid: int) -> int | None:
    """Return the soft limit of file locks of a process, 0 for this one; None when nobody tells us."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not every system has it

        with suppress(OSError):
            return resource.prlimit(pid, LOCKS_LIMIT)[0]
    return None


def _set_limit(soft: int) -> bool:
    """Set the soft limit of this process; no when the system does not let us."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not every system has it

        with suppress(ValueError, OSError):
            resource.setrlimit(LOCKS_LIMIT, (soft, resource.getrlimit(LOCKS_LIMIT)[1]))
            return True
    return False
