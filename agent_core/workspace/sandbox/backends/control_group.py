"""A control group for what root starts: the kernel does not count the processes of root. Blocking."""

import os
import re
import secrets
import threading
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
