"""An event loop whose time goes on by itself whenever nothing is left to do: waits cost nothing."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from anyio import to_thread
from typing_extensions import override

T = TypeVar("T")
STUCK_S = 30.0
"""A thread that takes longer than this hangs."""


class _Jumping(selectors.DefaultSelector):
    """Waits only for threads; else it lets the time pass that was to be waited."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.threads: Callable[[], int] = lambda: 0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.threads():
            ready = super().select(STUCK_S)
            if not ready:
                message = "nothing happens any more"
                raise RuntimeError(message)
            return ready
        self.now_s += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    @override
    def time(self) -> float:
        return self._jumping.now_s

    def count_threads(self) -> None:
        """Let no time pass while a thread works for this loop."""
        limiter = to_thread.current_default_thread_limiter()
        self._jumping.threads = lambda: limiter.borrowed_tokens


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, in no more time than its steps take."""

    async def counted() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.count_threads()
        return await work

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(counted())
