"""Calls from plain functions of extensions, which run in threads, into the thread of the session's event loop."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import anyio.to_thread
import msgspec

from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value

T = TypeVar("T")


async def call_either(function: Callable[..., object], *given: object) -> object:
    """Call a function of either colour; a plain one runs in a thread, which is left to itself when cancelled."""
    if inspect.iscoroutinefunction(function):
        return await function(*given)  # pyright: ignore[reportAny] - code of others
    made = await anyio.to_thread.run_sync(partial(function, *given), abandon_on_cancel=True)
    return await made if inspect.isawaitable(made) else made


class LoopThread(Value, frozen=True):
    """The thread of a loop; to be made on it."""

    _loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)

    @property
    def is_here(self) -> bool:
        """Whether this is that thread."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def call(self, act: Callable[[], T]) -> T:
        """Do something there, and give what came of it."""
        if self.is_here:
            return act()
        done: Future[T] = Future()

        def there() -> None:
            try:
                done.set_result(act())
            except BaseException as error:  # noqa: BLE001 - goes to whoever waits in the thread
                done.set_exception(error)

        _ = self._loop.call_soon_threadsafe(there)
        return done.result()

    def wait_for(self, work: Coroutine[object, None, T]) -> T:
        """Have something awaited there, and give what came of it; only for threads beside it.

        Raises:
            ExtensionBroken: This is the loop's own thread, where it is to be awaited.
        """
        if self.is_here:
            work.close()
            message = (
                "this runs on the loop's thread: write await, for ctx.wait is for plain functions"
            )
            raise ExtensionBroken(message)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
