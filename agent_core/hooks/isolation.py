"""Isolation of hooks: several are asked in order in one separate task, and none can hold it beyond its time limit.

A coroutine is stepped by hand. A hook that swallows its cancellation, or blocks it with a shield, is abandoned after
a grace period; a blocking function runs in a thread of its own, which is not waited for either.
"""

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import TypeVar

import anyio

from agent_core.hooks.call import HookCall
from agent_core.hooks.failure import wait_stack

GRACE_S = 1.0
"""How long a hook may take to end after its time was over, or as long as its limit when that is shorter."""
MOST_THREADS_LEFT = 4
"""So many calls of one owner may go on after nobody waits for them; then it is not asked in threads any more."""
MOST_CLOSINGS = 8
"""So often a coroutine that ignores its end is asked to end."""

T = TypeVar("T")


class OutOfTime(TimeoutError):
    """A hook gave no answer within its time."""

    def __init__(self, why: str, *, stood: str | None = None) -> None:
        super().__init__(why)
        self.stood = stood
        """Where the hook waited when its time was over."""


class HookAbandoned(OutOfTime):
    """It did not even end when it was cancelled, and was left where it stood."""


class Threads:
    """Runs blocking functions, each in a thread of its own that holds up nothing when it never ends."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run a function in a thread; cancelled, the thread is left to itself.

        Raises:
            OutOfTime: Too many calls of the owner never came back.
        """
        if self._running[owner] >= MOST_THREADS_LEFT:
            message = f"{self._running[owner]} earlier calls of {owner} are still running; it is asked again when one ends"
            raise OutOfTime(message)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._running[owner] -= 1
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # pyright: ignore[reportArgumentType] - there is one without an error

        def body() -> None:
            result, failure = None, None
            try:
                result = around.run(work)
            except BaseException as error:  # noqa: BLE001 - goes to whoever waits
                failure = (
                    RuntimeError(f"gave {error!r}") if isinstance(error, StopIteration) else error
                )
            try:
                loop.call_soon_threadsafe(settle, result, failure)
            except RuntimeError:
                # The loop is gone, and whoever waited with it.
                return

        around = contextvars.copy_context()
        self._running[owner] += 1
        # Not one of the pool's: those are waited for when the process ends.
        threading.Thread(target=body, name=f"hook of {owner}", daemon=True).start()
        return await done


async def apart(work: Coroutine[object, None, None], *, stop: Callable[[], None]) -> None:
    """Wait for work in a separate task. On cancellation, call `stop` and still wait for the work to end.

    Args:
        work: The work. It ends soon after `stop` is called, and raises nothing.
        stop: Asks the work to end.
    """
    # No group's task: code of others may leave the state of its task such that no group could end it.
    loop = asyncio.get_running_loop()
    task, over = loop.create_task(work), loop.create_future()
    task.add_done_callback(lambda _: over.done() or over.set_result(None))
    try:
        # Not for the task itself: what cancels us must not cancel it wherever it stands.
        await over
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            _ = await asyncio.wait([task])
        raise


async def within_limit(steps: Coroutine[object, None, T], call: HookCall) -> T:
    """Return what a coroutine gives, within the time of a call; to be used in a task of its own.

    Raises:
        OutOfTime: Its time was over.
        TornOff: It did not end when it was cancelled. The task may hold what it left behind, and should end.
    """
    patience = HookWatchdog()
    try:
        with patience.scope:
            answer = await patience.wait(steps, call)
            if not patience.scope.cancel_called:
                return answer
    except BaseException:
        # A scope that the coroutine never left hides what was raised inside of it.
        if patience.torn is not None:
            raise patience.torn from None
        raise
    raise OutOfTime(call.why_over, stood=patience.stood)


class HookWatchdog:
    """Watches over the coroutines that one task waits for, one after the other, until the first that takes too long."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Around all of them; cancelled when the time of one is over."""
        self.stood: str | None = None
        """Where that one waited."""
        self.torn: HookAbandoned | None = None
        """Set when it did not end and was left."""
        self.is_over = False
        self._call: HookCall | None = None
        self._steps: Coroutine[object, None, object] | None = None
        self._forcing: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None

    @coroutine
    def wait(self, steps: Coroutine[object, None, T], call: HookCall) -> Generator[object, None, T]:
        """Step a coroutine until it ends or the patience does."""
        try:
            # Most never wait, and need no clock.
            waits_for = steps.send(None)  # decision 0040
        except StopIteration as end:
            call.end()
            return end.value  # pyright: ignore[reportAny] - typed as `T` by the coroutine
        self._begin(steps, call)
        try:
            while True:
                try:
                    yield waits_for
                except GeneratorExit:
                    raise
                except BaseException as error:
                    if self.is_over:
                        why = f"{call.why_over}, and it did not let itself be cancelled"
                        self.torn = HookAbandoned(why, stood=self.stood)
                        raise self.torn from error
                    self._cancelled()
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(None)
        except StopIteration as end:
            return end.value  # pyright: ignore[reportAny] - typed as `T` by the coroutine
        finally:
            self._end(call)
            _close(steps)

    def _begin(self, steps: Coroutine[object, None, object], call: HookCall) -> None:
        self._task = asyncio.current_task()
        self._steps, self._call = steps, call
        call.start(self._time_is_over)

    def _end(self, call: HookCall) -> None:
        call.end()
        if self._forcing is not None:
            self._forcing.cancel()

    def _cancelled(self) -> None:
        """Leave only the grace, from the first cancellation on."""
        if self._forcing is None and self._call is not None:
            grace_s = min(GRACE_S, self._call.limit_s)
            self._forcing = asyncio.get_running_loop().call_later(grace_s, self._force)

    def _time_is_over(self) -> None:
        if self._steps is not None:
            self.stood = wait_stack(self._steps)
        self.scope.cancel()
        # Told by ourselves as well: a shield keeps the cancellation away from the coroutine.
        self._cancelled()

    def _force(self) -> None:
        self.is_over = True
        if self._task is not None:
            _ = self._task.cancel()


def _close(steps: Coroutine[object, None, object]) -> None:
    for _ in range(MOST_CLOSINGS):
        try:
            steps.close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001 - it is left anyway
            return
        return
