"""The marks by which a process is known to come from one command, whatever it has done since.

There are two. A variable in the environment, which `env -i` takes away, and which nobody can read for a moment
while a process turns into another program; it also tells a Tiller about what a Tiller that it runs has started.
And a limit of an odd value, which survives `exec`, `fork`, `setsid`, a new parent, a new name, closed descriptors
and an empty environment. Linux has one limit that limits nothing: that of file locks has had no effect since
2.4.25.

What else is inherited did not do: sessions and parents change, descriptors are closed, groups of control and
namespaces need rights, timer slack can be read by root alone, priorities and affinities change how a command runs.
Whoever means to hide can set the limit anew: this keeps order, it is no fence.
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
"""Nobody chooses such a number by chance."""
# Limits belong to the whole process: while one command is being started, no other one may be.
_STARTING = threading.Lock()


class Mark(Value, frozen=True, kw_only=True):
    """What tells the processes of one command from all others."""

    text: str
    """Somewhere in the variable."""
    limit: int | None
    """The soft limit of file locks; None where the system has none that can be set."""

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Add the variable; an outer mark is kept, since an outer Tiller must find its processes too."""
        return {**env, MARK: f"{env[MARK]}:{self.text}" if MARK in env else self.text}


@contextmanager
def fresh_mark() -> Generator[Mark]:
    """Make a mark; what is started in the context inherits the limit. Blocks while another thread is in here."""
    text = secrets.token_hex(16)
    with _STARTING:
        before = limit_of(0)
        limit = LEAST_LIMIT + secrets.randbelow(LEAST_LIMIT)
        # Set here and taken back, not in the child: code between fork and exec is slow and may deadlock,
        # and setting it from outside afterwards loses the race against a child that forks at once.
        if before is None or not _set_limit(limit):
            limit = None
        try:
            yield Mark(text=text, limit=limit)
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
