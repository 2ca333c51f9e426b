"""Short blocking calls beside the event loop, steps shielded from cancellation, pauses of garbage collection.

A tool call makes about ten of them. A call that does nothing takes 122 Python calls with `anyio.to_thread.run_sync`.
"""

import asyncio
import gc
import math
import threading
import time
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Final, Generic, TypeVar, cast

import anyio
from anyio.lowlevel import RunVar, checkpoint_if_cancelled
from typing_extensions import TypeVarTuple, Unpack, override

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

MOST_IDLE: Final = 4
"""How many threads of a loop wait for the next call; there is no bound for those that work."""
AHEAD_S: Final = 1.0
"""How old a result of `ReadAhead` may be: a run can wait for a person between the read and its use."""


async def run_in_thread(function: Callable[[Unpack[Arguments]], T], *arguments: *Arguments) -> T:
    """Return what a blocking function returns. Cancelled before it begins it is not called; once begun it is waited for.

    Only the cancellation of the task itself, by no cancel scope, leaves a call to itself, as it does with
    `anyio.to_thread`.

    Raises:
        Exception: Any exception of the function.
    """
    await checkpoint_if_cancelled()
    return await begin_in_thread(function, *arguments).wait()


def begin_in_thread(
    function: Callable[[Unpack[Arguments]], T], *arguments: *Arguments
) -> "ThreadCall[T]":
    """Begin a blocking call whose result is waited for later, or never."""
    try:
        workers = _WORKERS.get()
    except LookupError:
        workers = _Workers()
        _ = _WORKERS.set(workers)
    job = ThreadCall(lambda: function(*arguments), get_running_loop())
    thread = workers.idle.pop() if workers.idle else _Thread(workers.idle, workers.all)
    thread.jobs.put(cast("ThreadCall[object]", job))  # the thread only hands the result on
    return job


async def run_abandonable(function: Callable[[Unpack[Arguments]], T], *arguments: *Arguments) -> T:
    """Do as `run_in_thread` does, but leave a call that has begun to itself when the caller is cancelled.

    Raises:
        Exception: Any exception of the function.
    """
    await checkpoint_if_cancelled()
    job = begin_in_thread(function, *arguments)
    await job.over
    return job.outcome()


class ReadAhead(Generic[T]):
    """A blocking read made in the same call in a thread as others, for the code that asks for its result next.

    A result is used once. It depends on the inputs of the read, and on the files as they were within the last second:
    with other inputs, or later, the files are read again.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Create it with a clock that only goes on."""
        self._now_s = now_s
        self._made: tuple[object, float, T] | None = None

    def prepare(self, inputs: object, read: Callable[[], T]) -> Callable[[], None]:
        """Drop an unused result; return a blocking function that reads and keeps the result."""
        self._made = None

        def make() -> None:
            at_s = self._now_s()
            # A failure belongs to the code that asks for the result, which reads again.
            with suppress(Exception):
                self._made = (inputs, at_s, read())

        return make

    async def take(self, inputs: object, read: Callable[[], T]) -> T:
        """Return the result that was kept for equal inputs, else read in a thread."""
        made, self._made = self._made, None
        if made is not None and made[0] == inputs and self._now_s() - made[1] < AHEAD_S:
            return made[2]
        return await run_in_thread(read)


class ThreadCall(Generic[T]):
    """A call in a thread that has begun."""

    def __init__(self, work: Callable[[], T], loop: AbstractEventLoop) -> None:
        self.work = work
        self.context = copy_context()
        self.loop = loop
        self.over = loop.create_future()
        self.is_over = False
        self.result: list[T] = []
        self.error: BaseException | None = None

    async def wait(self) -> T:
        """Return what the function returns; cancellation waits for the call, as in `run_in_thread`.

        Raises:
            Exception: Any exception of the function.
        """
        try:
            await self.over
        except asyncio.CancelledError:
            if anyio.current_effective_deadline() != -math.inf:
                raise
            if not self.is_over:
                self.over = self.loop.create_future()
                with anyio.CancelScope(shield=True):
                    await self.over
        return self.outcome()

    def outcome(self) -> T:
        """Return what the function returned, or raise what it raised."""
        error, self.error = self.error, None
        if error is None:
            return self.result[0]
        try:
            raise error
        finally:
            del (
                error,
                self,
            )  # a traceback that holds its own exception would live until the next collection


class _Thread(threading.Thread):
    """A thread that makes one call after the other until it gets None."""

    def __init__(self, idle: "list[_Thread]", workers: "set[_Thread]") -> None:
        # A process that ends waits for its loop, and the loop for its calls; only an idle thread is left then.
        super().__init__(name="agent worker", daemon=True)
        self.jobs: SimpleQueue[ThreadCall[object] | None] = SimpleQueue()
        self._idle = idle
        self._workers = workers
        workers.add(self)
        self.start()

    @override
    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            try:
                job.result.append(job.context.run(job.work))
            except BaseException as error:  # noqa: BLE001 - raised again where the call is waited for
                job.error = error
            try:
                handle = job.loop.call_soon_threadsafe(self._end, job)
            except RuntimeError:
                return  # the loop was closed meanwhile
            # A thread that waits would keep the result of its last call, and the loop.
            del job, handle

    def _end(self, job: ThreadCall[object]) -> None:
        """Wake the caller, and wait for the next call; on the loop's thread."""
        job.is_over = True
        if not job.over.done():
            job.over.set_result(None)
        if len(self._idle) < MOST_IDLE:
            self._idle.append(self)
        else:
            self._workers.discard(self)
            self.jobs.put(None)


class _Workers:
    """The threads of a loop; they end when the loop is freed.

    Those that make a call then are ended as well: a call that is left to itself ends after the last step of the loop,
    which no longer counts its thread as idle.
    """

    def __init__(self) -> None:
        self.idle: list[_Thread] = []
        self.all: set[_Thread] = set()

    def __del__(self) -> None:
        for thread in self.all:
            thread.jobs.put(None)


_WORKERS: Final[RunVar[_Workers]] = RunVar("agent_core.kernel.threads")


async def uncancelled(step: Awaitable[T]) -> T:
    """Finish a short step whatever is cancelled meanwhile; the cancellation then goes on."""
    done: list[T] = []
    with anyio.CancelScope(shield=True):
        done.append(await step)
    return done[0]


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause cyclic garbage collection in the whole process while many long-lived values are created.

    Collections would traverse these values again and again: up to a fifth of the time. Several threads may pause at
    once; collection resumes when the first of those that found it enabled is done. The values created meanwhile are
    in the oldest generation then.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # A process that keeps objects frozen watches the collector (decision 0034); counting them takes up to 20 ms.
            if not gc.callbacks:
                # Frozen and unfrozen, all that there is belongs to the oldest generation.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
