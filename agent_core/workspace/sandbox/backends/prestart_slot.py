"""Holds one process that was started ahead of its command, until it is used or the sandbox is closed."""

import threading
from collections.abc import Callable
from typing import Protocol


class PrestartedProcess(Protocol):
    """A process that waits for its command."""

    def end(self) -> None:
        """End it unused. Blocking, idempotent."""
        ...


class Slot:
    """Room for one such process. Threads may share it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._waiting: PrestartedProcess | None = None
        self._is_closed = False

    def fill(self, start: Callable[[], PrestartedProcess | None]) -> None:
        """Start a process that waits, unless there is one or the slot was closed. Blocking."""
        with self._turn:
            if self._waiting is None and not self._is_closed:
                self._waiting = start()

    def take(self) -> PrestartedProcess | None:
        """Return the process that waits, which the caller then ends; None: there is none."""
        with self._turn:
            waiting, self._waiting = self._waiting, None
            return waiting

    def close(self) -> None:
        """End what waits; nothing is started any more. Blocking, idempotent."""
        with self._turn:
            self._is_closed = True
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.end()
