"""A control group for what root starts: the kernel does not count the processes of root. Blocking."""

import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

FIRST: Final = Path("/sys/fs/cgroup/pids")
"""The older kind, in which a thread can stand alone: what it starts stands there too, at no cost."""
SECOND: Final = Path("/sys/fs/cgroup")
MEMORY_SHARE: Final = 0.75
SHELL: Final = "/bin/sh"
ENTER: Final = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
"""Enters a group of the newer kind, then becomes the command: whoever starts it must not enter itself."""


class ControlGroup:
    """Limits how many processes there are, where that is for us to set."""

    def __init__(self, *, processes: int, memory_bytes: int | None) -> None:
        self._processes = processes
        self._memory_bytes = memory_bytes
        self._folder: Path | None = None
        self._is_made = False
        self._threads: set[int] = set()

    def enter(self) -> None:
        """Let what this thread starts from now on stand in the group, where a thread can do that."""
        folder = self._made()
        me = threading.get_native_id()
        if folder is None or not _takes_threads(folder) or me in self._threads:
            return
        with suppress(OSError):
            _ = (folder / "tasks").write_text(str(me), "ascii")
            self._threads.add(me)

    def entered(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Let a command enter the group itself, where a thread cannot; as it is otherwise."""
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
        folder = parent / f"tiller-{secrets.token_hex(6)}"
        try:
            folder.mkdir()
            for name, value in limits.items():
                _ = (folder / name).write_text(value, "ascii")
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            return None
        return folder


def _takes_threads(folder: Path) -> bool:
    return folder.parent == FIRST
