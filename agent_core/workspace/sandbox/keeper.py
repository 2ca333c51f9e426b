"""The script that stands beside a contained command: sets limits, runs it, says how it ended, and waits."""

import os
import re
from typing import Final

from agent_core.kernel.records import dataclass

SHELLS: Final = (
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
)
"""Plainer shells have names for ten descriptors only."""
FILE_BYTES: Final = 8_589_934_592
PROCESSES: Final = 2048
KIB: Final = 1024
COUNTED_PER_NAMESPACE: Final = (5, 14)
"""Before this Linux the limit of processes counted all that the user has anywhere."""
SIGNALLED: Final = 128
ALONE: Final = 2
"""So many processes are in the namespace when a command has left none: the keeper and its init."""

_REPORT: Final = re.compile(r"(?:^|\n)(\d{1,3}) (\d{1,7})\n\Z")
# bash says nothing when one of these ends a child.
_SILENT: Final = frozenset({2, 13})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a contained command ended."""

    exit_code: int | None
    signal: int | None
    processes: int
    """How many there were then in its namespace."""

    @property
    def was_alone(self) -> bool:
        """Whether it left nothing running."""
        return self.processes <= ALONE


def keeper_script(*, memory_bytes: int | None, limits_processes: bool) -> str:
    """Give the script; its arguments are the number of the descriptor for output, and the command.

    Its own output is for the report alone, and so is that of bubblewrap, which keeps it open to the end; the command's goes to a
    descriptor that only the command has. A signal is told from an exit code by what the shell says of it. When something
    runs in the background it stops, which keeps the namespace until that is ended from outside: the exit code is known
    at once, and what runs is still there to be told of. Otherwise it ends, and the namespace with it.
    """
    limits = ["ulimit -c 0", f"ulimit -f {FILE_BYTES // KIB}"]
    if memory_bytes is not None:
        limits.append(f"ulimit -d {memory_bytes // KIB}")
    if limits_processes:
        limits.append(f"ulimit -u {PROCESSES}")
    set_limits = "; ".join(f"{one} 2>/dev/null" for one in limits)
    return (
        f'o=$1; shift; {set_limits}; (exec "$@" >&"$o" 2>&1 {{o}}>&-); c=$?; exec {{o}}>&-; '
        f'set -- /proc/[0-9]*; echo "$c $#"; [ $# -le {ALONE} ] || kill -s STOP $$'
    )


def find_shell() -> str | None:
    """Find the shell for the script. Blocking."""
    return next((shell for shell in SHELLS if os.access(shell, os.X_OK)), None)


def limits_processes(release: str) -> bool:
    """Tell whether the limit of processes counts only those of one command, by the version of the kernel. Pure."""
    major, _, rest = release.partition(".")
    minor = re.match(r"\d+", rest)
    return (int(major), int(minor[0]) if minor else 0) >= COUNTED_PER_NAMESPACE


def memory_bytes() -> int | None:
    """Give what one process may have at most: as much as the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def read_report(text: str) -> Report | None:
    """Read what the keeper said; None while it has not, or if it never did. Pure."""
    found = _REPORT.search(text)
    if found is None:
        return None
    code, processes = int(found[1]), int(found[2])
    number = code - SIGNALLED
    spoken = text[: found.start()].strip()
    if number > 0 and (spoken or number in _SILENT):
        return Report(exit_code=None, signal=number, processes=processes)
    return Report(exit_code=code, signal=None, processes=processes)
