"""Calls in threads: what comes back, what a cancellation does, and how many threads stay."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable

import anyio
import pytest
from typing_extensions import override

from agent_core.kernel.threads import (
    AHEAD_S,
    MOST_IDLE,
    ReadAhead,
    begin_in_thread,
    run_abandonable,
    run_in_thread,
)


async def test_what_a_call_returns_comes_back_and_it_ran_beside_the_loop() -> None:
    def add(first: int, second: int) -> tuple[int, bool]:
        return first + second, threading.current_thread() is threading.main_thread()

    assert await run_in_thread(add, 1, 2) == (3, False)


@pytest.mark.parametrize("error", [OSError(28, "no space"), asyncio.CancelledError("of its own")])
async def test_what_a_call_raises_is_raised_where_it_is_waited_for(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await run_in_thread(fail)
    assert raised.value is error


async def test_a_call_that_is_cancelled_before_it_begins_is_not_made() -> None:
    made: list[int] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run_in_thread(made.append, 1)
    assert scope.cancelled_caught
    assert made == []


async def test_a_call_that_is_cancelled_later_is_waited_for_and_what_it_made_is_not_lost() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert may_end.wait(10)
        return "made"

    results: list[str] = []

    async def wait() -> None:
        results.append(await run_in_thread(work))
        await anyio.lowlevel.checkpoint()
        results.append("went on")

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await run_in_thread(_waits(begun))
            scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                assert results == []
                may_end.set()
    assert results == ["made"]


async def test_a_task_that_is_cancelled_itself_leaves_its_call() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(10)

    task = asyncio.create_task(run_in_thread(work))  # noqa: TID251 - a task of nobody's, as a request of pygls is one
    await run_in_thread(_waits(begun))
    _ = task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()


async def test_calls_run_side_by_side_and_few_of_their_threads_stay() -> None:
    calls = MOST_IDLE * 3
    together, used = threading.Barrier(calls), list[threading.Thread]()

    def meet() -> None:
        used.append(threading.current_thread())
        _ = together.wait(10)

    async with anyio.create_task_group() as group:
        for _ in range(calls):
            group.start_soon(run_in_thread, meet)
    assert len(set(used)) == calls
    for thread in used:
        await run_in_thread(_joins(thread))
    assert sum(thread.is_alive() for thread in used) <= MOST_IDLE


async def test_a_thread_that_waits_keeps_nothing_of_its_last_call() -> None:
    class Result:
        """A value that can be referenced weakly."""

    result = await run_in_thread(Result)
    kept = weakref.ref(result)
    del result
    _ = gc.collect()
    assert kept() is None


def test_the_threads_end_with_their_loop() -> None:
    used: list[threading.Thread] = []

    async def call() -> None:
        used.append(await run_in_thread(threading.current_thread))

    asyncio.run(call())
    _ = gc.collect()
    used[0].join(10)
    assert not used[0].is_alive()


def test_a_thread_whose_call_ends_after_the_last_step_of_the_loop_ends_too() -> None:
    queued, begun, may_end = threading.Event(), threading.Event(), threading.Event()
    used: list[threading.Thread] = []

    class Loop(asyncio.SelectorEventLoop):
        """Report what threads schedule."""

        @override
        def call_soon_threadsafe(self, *arguments: object, **options: object) -> asyncio.Handle:
            handle = super().call_soon_threadsafe(*arguments, **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
            queued.set()
            return handle

    def work() -> None:
        used.append(threading.current_thread())
        begun.set()
        assert may_end.wait(10)

    async def leave() -> None:
        call = asyncio.create_task(run_abandonable(work))  # noqa: TID251 - nobody's task: the loop stops before it ends
        await run_in_thread(_waits(begun))
        _ = call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    loop = Loop()
    loop.run_until_complete(leave())
    queued.clear()
    may_end.set()
    assert queued.wait(10)
    loop.close()
    del loop
    _ = gc.collect()
    used[0].join(10)
    assert not used[0].is_alive()


def _waits(event: threading.Event) -> Callable[[], None]:
    def wait() -> None:
        assert event.wait(10)

    return wait


def _joins(thread: threading.Thread) -> Callable[[], None]:
    def join() -> None:
        if thread is not threading.current_thread():
            thread.join(0.2)

    return join


async def test_a_call_that_was_begun_runs_before_anybody_waits_for_it() -> None:
    has_run = threading.Event()
    begun = begin_in_thread(has_run.set)
    assert has_run.wait(10)
    assert await begun.wait() is None
    failing = begin_in_thread(_fail_on_disk)
    with pytest.raises(OSError, match="no space"):
        await failing.wait()


async def test_what_was_read_ahead_serves_once_and_only_for_the_same_inputs() -> None:
    ahead, reads = ReadAhead[int](), list[str]()

    def read(inputs: str) -> int:
        reads.append(inputs)
        return len(reads)

    def prepare() -> Callable[[], None]:
        return ahead.prepare("a", lambda: read("a"))

    await run_in_thread(prepare())
    assert await ahead.take("a", lambda: read("a")) == 1
    assert await ahead.take("a", lambda: read("a")) == 2, "used once"
    await run_in_thread(prepare())
    assert await ahead.take("b", lambda: read("b")) == 4
    assert await ahead.take("a", lambda: read("a")) == 5, "dropped by the other inputs"
    await run_in_thread(prepare())
    _ = prepare()
    assert await ahead.take("a", lambda: read("a")) == 7, "dropped by the next preparation"


async def test_what_could_not_be_read_ahead_is_read_again_by_who_asks_for_it() -> None:
    ahead = ReadAhead[str]()
    await run_in_thread(ahead.prepare((), _fail_on_disk))
    assert await ahead.take((), lambda: "anew") == "anew"
    await run_in_thread(ahead.prepare((), _fail_on_disk))
    with pytest.raises(OSError, match="no space"):
        await ahead.take((), _fail_on_disk)


async def test_what_was_read_ahead_is_used_within_a_second() -> None:
    now_s = 100.0
    ahead = ReadAhead[str](lambda: now_s)
    await run_in_thread(ahead.prepare((), lambda: "ahead"))
    now_s += 0.9
    assert await ahead.take((), lambda: "anew") == "ahead"
    await run_in_thread(ahead.prepare((), lambda: "ahead"))
    now_s += AHEAD_S
    assert await ahead.take((), lambda: "anew") == "anew"


async def test_a_call_that_may_be_abandoned_is_left_to_itself_when_its_time_is_over() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        _ = may_end.wait()
        ended.set()

    with anyio.move_on_after(0.05) as limit:
        await run_abandonable(hang)
    assert limit.cancelled_caught
    assert await run_in_thread(begun.wait, 5)
    assert not ended.is_set()
    may_end.set()
    assert await run_in_thread(ended.wait, 5)
    assert await run_abandonable(lambda: "the next call") == "the next call"
    with pytest.raises(OSError, match="no space"):
        await run_abandonable(_fail_on_disk)


def _fail_on_disk() -> str:
    raise OSError(28, "no space")
