"""The script that stands beside a contained command: sets limits, runs it, says how it ended; its control group."""

import os
import re
import secrets
import shlex
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from agent_core.kernel.values import Value

FIRST: Final = Path("/sys/fs/cgroup/pids")
"""cgroup v1, in which a single thread can be a member: the processes that it starts are members too, at no cost."""
SECOND: Final = Path("/sys/fs/cgroup")
MEMORY_SHARE: Final = 0.75
SHELL: Final = "/bin/sh"
ENTER: Final = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
"""Script that enters a cgroup v2, then becomes the command: the process that starts it must not enter itself."""
_NAME: Final = re.compile(r"tiller-([0-9]+)-([0-9]+)-([0-9]+)-[0-9a-f]+")
_STARTED: Final = 19
"""Where the time of its start stands behind the name of a process."""


class ControlGroup:
    """Limits how many processes there are, where that is for us to set."""

    def __init__(self, *, processes: int, memory_bytes: int | None) -> None:
        self._processes = processes
        self._memory_bytes = memory_bytes
        self._folder: Path | None = None
        self._is_made = False
        self._threads: set[int] = set()

    def enter(self) -> None:
        """Add the calling thread to the group, where threads can be added: its later children start there."""
        folder = self._made()
        me = threading.get_native_id()
        if folder is None or not _takes_threads(folder) or me in self._threads:
            return
        with suppress(OSError):
            _ = (folder / "tasks").write_text(str(me), "ascii")
            self._threads.add(me)

    def entered(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command that enters the group itself, where a thread cannot; otherwise the command unchanged."""
        folder = self._made()
        if folder is None or _takes_threads(folder):
            return argv
        return (SHELL, "-c", ENTER, "enter", str(folder), *argv)

    def close(self) -> None:
        """Remove the group. Nothing of it runs any more but the threads that started it."""
        folder, self._folder = self._folder, None
        self._is_made = False
        if folder is None:
            return
        for thread in self._threads:
            with suppress(OSError):
                _ = (folder.parent / "tasks").write_text(str(thread), "ascii")
        self._threads.clear()
        with suppress(OSError):
            folder.rmdir()

    def _made(self) -> Path | None:
        if not self._is_made:
            self._is_made = True
            self._folder = self._make() if os.geteuid() == 0 else None
        return self._folder

    def _make(self) -> Path | None:
        """Make a group with its limits; None when that is not possible."""
        limits = {"pids.max": str(self._processes)}
        parent = SECOND if (SECOND / "cgroup.controllers").exists() else FIRST
        if parent == SECOND and self._memory_bytes is not None:
            limits["memory.max"] = str(int(self._memory_bytes * MEMORY_SHARE))
        _remove_abandoned(parent)
        folder = parent / _Owner.this_process().group_name()
        try:
            folder.mkdir()
            for name, value in limits.items():
                _ = (folder / name).write_text(value, "ascii")
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            return None
        return folder


class _Owner(Value, frozen=True, kw_only=True):
    """The process that made a group: its number alone comes to mean another one."""

    space: int
    """Its process namespace: in another one its number means nothing."""
    pid: int
    started: int
    """In ticks since the machine was started, as /proc tells it; 0: it does not tell."""

    @classmethod
    def this_process(cls) -> Self:
        pid, started = os.getpid(), None
        with suppress(OSError):
            started = _started(pid)
        return cls(space=_own_space(), pid=pid, started=started or 0)

    @classmethod
    def of_group(cls, name: str) -> Self | None:
        """Read the owner from the name of a group; None when it names none."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        space, pid, started = map(int, match.groups())
        return cls(space=space, pid=pid, started=started)

    def group_name(self) -> str:
        return f"tiller-{self.space}-{self.pid}-{self.started}-{secrets.token_hex(6)}"

    def has_ended(self) -> bool:
        """Whether the process is known to have ended."""
        if self.space == 0 or self.space != _own_space() or self.started == 0:
            return False
        return _started(self.pid) != self.started


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of servers that were killed; the kernel keeps those in which something runs."""
    with suppress(OSError):
        for folder in parent.iterdir():
            owner = _Owner.of_group(folder.name)
            if owner is not None and owner.has_ended():
                with suppress(OSError):
                    folder.rmdir()


def _own_space() -> int:
    """Return the number of this process's namespace of processes; 0 when the system does not tell."""
    with suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino
    return 0


def _started(pid: int) -> int | None:
    """Return when a process was started; None when there is none.

    Raises:
        OSError: Nothing can be read at the moment.
    """
    try:
        after = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(after[_STARTED])


def _takes_threads(folder: Path) -> bool:
    return folder.parent == FIRST


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

EXCHANGED: Final = 125
EXCHANGED_SAID: Final = (
    "Containment was not set up as planned, so the command was not run: a folder of the workspace was exchanged meanwhile. "
    "Run it again."
)
# Outside of what was planned only devices and processes are mounted to be written to, and nothing of the plan is missing.
# The table is read whole: `read` goes back after each line of it, and the kernel then writes all lines again.
CHECK_MOUNTS: Final = rf"""
declare -A m a; IFS=$'\n'; set -f; ok=1
for p in $planned; do m[$p]=1; done; for p in $writable; do a[$p]=1; done
left=${{#m[@]}}; unset IFS; mapfile -t lines </proc/self/mountinfo
for f in "${{lines[@]}}"; do f=($f); p=${{f[4]}}; f=${{f[5]}}
  case ${{m[$p]}}${{a[$p]}}$f in
    1*) left=$((left-${{m[$p]:-0}})); m[$p]=; a[$p]=1;;
    rw*) case $p in /dev|/dev/*|/proc|/proc/*) ;; *) ok=;; esac;;
  esac
done
set +f
[ -n "$ok" ] && [ "$left" = 0 ] || {{ echo "{EXCHANGED_SAID}" >&"$o"; echo "$k {EXCHANGED} 2"; exit {EXCHANGED}; }}
"""
WAITS_S: Final = 600
"""So long a keeper waits for an order."""
MOST_ORDER_BYTES: Final = 60_000
"""A pipe takes so much at once, before the keeper reads."""
# Without the key, which stands at the end, an order is incomplete.
READ_ORDER: Final = (
    f'if [ $# != 0 ]; then read -r k <&"$n"; else echo; read -r -t {WAITS_S} k <&"$n" && . "/dev/fd/$n"; fi; '
    f'[ -n "$k" ] || exit {EXCHANGED};'
)
_REPORT: Final = re.compile(r"^(\S+) (\d{1,3}) (\d{1,7})\n", re.MULTILINE)
# bash says nothing when one of these ends a child.
_SILENT: Final = frozenset({2, 13})


class KeeperReport(Value, frozen=True, kw_only=True):
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
    """Return the script of the keeper.

    Its arguments are the descriptor for output, the one that the key of the report is read from, the mounts that must be there, the writable ones (both as of
    `planned_mounts`), and the command. Without a command it prints an empty line and waits for an order (`order_of`) on the second
    descriptor; the mounts are checked after that.

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
        f'o=$1; n=$2; planned=$3; writable=$4; shift 4; {set_limits}; {READ_ORDER} exec {{n}}<&-; {CHECK_MOUNTS} (exec "$@" >&"$o" 2>&1 {{o}}>&-); c=$?; exec {{o}}>&-; '
        f'set -- /proc/[0-9]*; echo "$k $c $#"; [ $# -le {ALONE} ] || kill -s STOP $$'
    )


def order_of(argv: Iterable[str], *, cwd: Path, key: str) -> bytes:
    """Return what makes a keeper that waits run a command. Pure.

    Raises:
        ValueError: A word has a NUL in it.
    """
    # The folder may have been made anew since the keeper entered it.
    enter = shlex.join(("cd", "--", str(cwd)))
    text = f"\n{enter} && unset -v OLDPWD && set -- {shlex.join(argv)} && k={key}\n"
    if "\0" in text:
        message = "embedded null byte"
        raise ValueError(message)
    return os.fsencode(text)


def planned_mounts(places: Iterable[Path]) -> str:
    """Return mount points as the kernel writes them in /proc/self/mountinfo, each on a line (proc_pid_mountinfo(5))."""
    return "".join(f"{_escaped(str(place))}\n" for place in places)


def lacks_mounts(mounts: bytes, planned: str) -> bool:
    """Return whether a planned mount is missing in the text of /proc/self/mountinfo. Pure."""
    there = {line.split(b" ", 5)[4] for line in mounts.split(b"\n") if line}
    return not there.issuperset(os.fsencode(planned).split(b"\n")[:-1])


def _escaped(path: str) -> str:
    for char in "\\ \t\n":
        path = path.replace(char, f"\\{ord(char):03o}")
    return path


def find_shell() -> str | None:
    """Find the shell for the script. Blocking."""
    return next((shell for shell in SHELLS if os.access(shell, os.X_OK)), None)


def limits_processes(release: str) -> bool:
    """Return whether the limit of processes counts only those of one command, by the version of the kernel. Pure."""
    major, _, rest = release.partition(".")
    minor = re.match(r"\d+", rest)
    return (int(major), int(minor[0]) if minor else 0) >= COUNTED_PER_NAMESPACE


def memory_bytes() -> int | None:
    """Return what one process may have at most: as much as the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def read_report(text: str, *, key: str) -> KeeperReport | None:
    """Read what the keeper said; None while it has not, or if it never did. Pure.

    The command can write to the same pipe, by way of /proc; without the key nothing of that is a report.
    """
    found = next((match for match in _REPORT.finditer(text) if match[1] == key), None)
    if found is None:
        return None
    code, processes = int(found[2]), int(found[3])
    number = code - SIGNALLED
    spoken = text[: found.start()].strip()
    if number > 0 and (spoken or number in _SILENT):
        return KeeperReport(exit_code=None, signal=number, processes=processes)
    return KeeperReport(exit_code=code, signal=None, processes=processes)
