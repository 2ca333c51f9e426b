"""A thread that starts processes and goes on living.

bubblewrap dies with its parent, so that nothing is left when we are killed. For the kernel that parent is a *thread*:
one from a pool, which ends when it has been idle, would take running commands with it.
"""

import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Starter(Generic[Made]):
    """Runs functions on one thread of its own, which lives as long as this object."""

    def __init__(self) -> None:
        self._wanted: queue.SimpleQueue[tuple[Callable[[], Made], Future[Made]] | None] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._runs = False

    def run(self, function: Callable[[], Made]) -> Made:
        """Run a function there and give what it gives, or raise what it raises. Blocking."""
        self._begin()
        future: Future[Made] = Future()
        self._wanted.put((function, future))
        return future.result()

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


def _serve(wanted: "queue.SimpleQueue[tuple[Callable[[], Made], Future[Made]] | None]") -> None:
    while (one := wanted.get()) is not None:
        function, future = one
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again for whoever asked
            future.set_exception(error)
        # Neither is to be kept until somebody asks again.
        del one, function, future
