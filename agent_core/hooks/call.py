"""One call of a hook: the state behind its context, and its time limit."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager


class HookCall:
    """One call of a hook. Contexts of extensions are made around it; all of it is for the loop's thread."""

    __slots__ = ("_is_over", "_left_s", "_loop", "_on_time", "_pauses", "_since_s", "_timer", "limit_s", "owner", "point")  # fmt: skip

    def __init__(self, owner: str, point: str, limit_s: float) -> None:
        self.owner = owner
        self.point = point
        """The name of the point, as `tool_call`."""
        self.limit_s = limit_s
        self._is_over = False
        self._left_s = limit_s
        self._since_s = 0.0
        self._pauses = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._on_time: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the answer is there, or is not waited for any more."""
        return self._is_over

    @property
    def why_over(self) -> str:
        """Return what it means that its time is over."""
        return f"no answer within {self.limit_s:g} s"

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock for waiting that is not the hook's own: for a person's answer, a process, a model.

        May be entered several times at once.
        """
        self._pauses += 1
        if self._pauses == 1:
            self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._go_on()

    def start(self, on_time: Callable[[], None]) -> None:
        """Start the timer; the function is called once when the time is over."""
        self._loop = asyncio.get_running_loop()
        self._on_time = on_time
        self._go_on()

    def give_up(self) -> None:
        """Cancel what waits, as if the time were over."""
        if not self._is_over and self._on_time is not None:
            self._on_time()

    def end(self) -> None:
        """End the call and stop its clock: no caller waits for an answer any more."""
        self._is_over = True
        self._stop()

    def _go_on(self) -> None:
        if self._pauses == 0 and self._loop is not None and not self._is_over:
            self._since_s = self._loop.time()
            self._timer = self._loop.call_later(self._left_s, self._time_is_over)

    def _stop(self) -> None:
        if self._timer is not None and self._loop is not None:
            self._timer.cancel()
            self._timer = None
            self._left_s = max(0.0, self._left_s - (self._loop.time() - self._since_s))

    def _time_is_over(self) -> None:
        self._timer = None
        if self._on_time is not None:
            self._on_time()
