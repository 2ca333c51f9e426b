"""A thread that starts processes and goes on living.

bubblewrap dies with its parent, so that nothing is left when we are killed. For the kernel that parent is a *thread*:
one from a pool, which ends when it has been idle, would take running commands with it.
"""

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

log = logging.getLogger(__name__)
StarterResult = TypeVar("StarterResult")


class ProcessStarter:
    """Runs functions on one thread of its own, which lives as long as this object."""

    def __init__(self) -> None:
        self._wanted: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False

    def run(self, function: Callable[[], StarterResult]) -> StarterResult:
        """Run a function there and give what it gives, or raise what it raises. Blocking."""
        future: Future[StarterResult] = Future()

        def settle() -> None:
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised again for whoever asked
                future.set_exception(error)

        self.post(settle)
        return future.result()

    def post(self, function: Callable[[], object]) -> None:
        """Run a function on the thread later, after the functions posted before; its exception is logged."""
        self._begin()
        self._wanted.put(function)

    def _begin(self) -> None:
        with self._lock:
            if self._runs:
                return
            # A daemon: what is running must not keep the process from ending.
            threading.Thread(
                target=_serve, args=(self._wanted,), name="starter", daemon=True
            ).start()
            _ = weakref.finalize(self, self._wanted.put, None)
            self._runs = True


def _serve(wanted: "queue.SimpleQueue[Callable[[], object] | None]") -> None:
    while (function := wanted.get()) is not None:
        try:
            function()
        except Exception:
            log.exception("a function posted to the starter thread failed")
        # It is not to be kept until somebody asks again.
        del function
