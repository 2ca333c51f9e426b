"""What hooks of others can do wrong, and what it costs: their own effect, their own time, and a report."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agent_core.hooks import (
    ArgumentsReplaced,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    HeadersBuilt,
    HeadersChanged,
    Hook,
    HookCall,
    HookFailure,
    HookLimits,
    HookRunner,
    HookTable,
    InputReplaced,
    InputTyped,
    ResultReplaced,
    ToolBlocked,
    ToolCalled,
    ToolReturned,
    TurnBegun,
)
from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import UsageError
from tests.support.hooks.hook_functions import gives, hangs, put, runner
from tests.support.hooks.hook_samples import ANSWER, SAMPLES

LIMIT_S = 0.05
CALLED = ToolCalled(call=ToolCallId("c1"), tool="bash", arguments={"env": {"A": "1"}})


async def swallows(*_: object) -> GoOn:
    while True:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            continue


async def hides(*_: object) -> GoOn:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()
    return GoOn()


async def cancels_itself(*_: object) -> GoOn:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.sleep_forever()
    return GoOn()


async def leaks(*_: object) -> GoOn:
    loop = asyncio.get_running_loop()
    task = loop.create_task(asyncio.sleep(30))
    loop.call_later(1, task.cancel)
    return GoOn()


async def spoils(*_: object) -> GoOn:
    # A scope that is entered and never left.
    anyio.CancelScope().__enter__()
    return GoOn()


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        pytest.param(swallows, "did not let itself be cancelled", id="swallows its cancellation"),
        pytest.param(hides, "did not let itself be cancelled", id="hides behind a shield"),
        pytest.param(cancels_itself, "cancelled the task", id="cancels its own task"),
        pytest.param(hangs, "no answer within 0.05 s", id="hangs"),
    ],
)
async def test_who_does_not_end_is_left_and_the_next_is_asked(
    hook: Callable[..., Awaitable[Any]], error: str
) -> None:
    table, seen = HookTable(), list[object]()
    put(table, TurnBegun, Hook("bad", hook), Hook("good", gives(GoOn(), seen=seen)))
    hooks, failures = runner(table, limit_s=LIMIT_S)
    with anyio.fail_after(5):
        assert await hooks.ask(SAMPLES[TurnBegun]) == GoOn()
    ((owner, point, told),) = failures
    assert (owner, point, error in told, len(seen)) == ("bad", "turn_start", True, 1)


@pytest.mark.parametrize("hook", [leaks, spoils])
async def test_what_a_hook_does_to_its_task_is_nobody_elses_matter(
    hook: Callable[..., Awaitable[Any]],
) -> None:
    table, seen = HookTable(), list[object]()
    put(table, TurnBegun, Hook("odd", hook), Hook("good", gives(GoOn(), seen=seen)))
    hooks, _ = runner(table)
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        assert await hooks.ask(SAMPLES[TurnBegun]) == GoOn()
        await anyio.lowlevel.checkpoint()
    assert (len(seen), scope.cancel_called) == (1, False)


async def test_the_report_says_where_a_hook_hung() -> None:
    failures: list[HookFailure] = []
    table = HookTable()
    table.add(Hook("slow", hangs), at=TurnBegun)
    hooks = HookRunner(table, report=failures.append, limits=HookLimits(short_s=LIMIT_S))
    await hooks.ask(SAMPLES[TurnBegun])
    assert "in hangs" in failures[0].stack
    assert failures[0].stack.endswith("no answer within 0.05 s\n")


# Blocking functions.


async def test_a_blocking_hook_runs_in_a_thread_and_its_answer_counts() -> None:
    threads: list[int] = []

    def block(called: ToolCalled, _: object) -> ToolBlocked:
        threads.append(threading.get_ident())
        return ToolBlocked(reason=f"not {called.tool}")

    table = HookTable()
    table.add(Hook("plain", block), at=ToolCalled)
    hooks, failures = runner(table)
    assert await hooks.ask(CALLED) == ToolBlocked(reason="not bash")
    assert (failures, threads == [threading.get_ident()]) == ([], False)


async def test_a_blocking_hook_that_raises_is_reported() -> None:
    def fail(*_: object) -> GoOn:
        raise StopIteration

    table = HookTable()
    table.add(Hook("plain", fail), at=TurnBegun)
    hooks, failures = runner(table)
    assert await hooks.ask(SAMPLES[TurnBegun]) == GoOn()
    assert failures == [("plain", "turn_start", "RuntimeError: gave StopIteration()")]


async def test_a_blocking_hook_that_never_ends_is_left_and_in_the_end_not_asked() -> None:
    end = threading.Event()
    asked: list[object] = []

    def sleep(value: object, _: object) -> GoOn:
        asked.append(value)
        end.wait(10)
        return GoOn()

    table = HookTable()
    table.add(Hook("plain", sleep), at=TurnBegun)
    hooks, failures = runner(table, limit_s=LIMIT_S)
    try:
        with anyio.fail_after(5):
            for _ in range(6):
                await hooks.ask(SAMPLES[TurnBegun])
    finally:
        end.set()
    assert len(asked) == 4
    assert [told for _, _, told in failures[:4]] == ["no answer within 0.05 s"] * 4
    assert failures[5][2].startswith("4 earlier calls of plain are still running")


async def test_an_object_whose_call_is_async_is_no_thread_matter() -> None:
    class Gate:
        async def __call__(self, called: ToolCalled, _: object) -> ToolBlocked:
            assert threading.current_thread() is threading.main_thread()
            return ToolBlocked(reason=called.tool)

    table = HookTable()
    table.add(Hook("gate", Gate()), at=ToolCalled)
    hooks, _ = runner(table)
    assert await hooks.ask(CALLED) == ToolBlocked(reason="bash")


async def test_a_function_that_gives_something_to_await_is_awaited() -> None:
    table = HookTable()
    table.add(Hook("lazy", lambda *_: gives(ToolBlocked(reason="no"))(None, None)), at=ToolCalled)
    hooks, failures = runner(table)
    assert (await hooks.ask(CALLED), failures) == (ToolBlocked(reason="no"), [])


# The clock.


async def test_the_clock_stands_while_a_hook_waits_for_others() -> None:
    async def asks_a_person(_: object, call: HookCall) -> ToolBlocked:
        with call.paused(), call.paused():
            await anyio.sleep(LIMIT_S * 3)
        await anyio.lowlevel.checkpoint()
        return ToolBlocked(reason="a person said no")

    table = HookTable()
    table.add(Hook("ui", asks_a_person), at=ToolCalled)
    hooks, failures = runner(table, limit_s=LIMIT_S)
    assert (await hooks.ask(CALLED), failures) == (ToolBlocked(reason="a person said no"), [])


async def test_the_clock_goes_on_where_it_stood() -> None:
    async def dawdles(_: object, call: HookCall) -> GoOn:
        await anyio.sleep(LIMIT_S / 2)
        with call.paused():
            await anyio.sleep(LIMIT_S * 2)
        await anyio.sleep_forever()
        return GoOn()

    table = HookTable()
    table.add(Hook("ui", dawdles), at=TurnBegun)
    hooks, failures = runner(table, limit_s=LIMIT_S)
    with anyio.fail_after(5):
        await hooks.ask(SAMPLES[TurnBegun])
    assert failures == [("ui", "turn_start", "no answer within 0.05 s")]


async def test_a_call_is_over_when_nobody_waits_for_it() -> None:
    calls: list[HookCall] = []

    async def keep(_: object, call: HookCall) -> GoOn:
        calls.append(call)
        assert not call.is_over
        return GoOn()

    table = HookTable()
    table.add(Hook("keeps", keep), at=TurnBegun)
    hooks, failures = runner(table)
    await hooks.ask(SAMPLES[TurnBegun])
    assert (failures, calls[0].is_over, calls[0].point) == ([], True, "turn_start")


async def test_each_point_has_its_own_limit() -> None:
    table = HookTable()
    table.add(Hook("slow", hangs), at=HeadersBuilt)
    table.add(Hook("slow", hangs), at=TurnBegun)
    told: list[str] = []
    hooks = HookRunner(
        table,
        report=lambda failure: told.append(failure.error),
        limits=HookLimits(short_s=0.02, long_s=0.03, by_point={"turn_start": 0.01}),
    )
    await hooks.ask(SAMPLES[HeadersBuilt])
    await hooks.ask(SAMPLES[TurnBegun])
    assert told == ["no answer within 0.03 s", "no answer within 0.01 s"]


async def test_a_context_is_made_for_each_call() -> None:
    seen: list[object] = []

    async def note(_: object, context: object) -> None:
        seen.append(context)

    def context(call: HookCall) -> str:
        return f"{call.owner} at {call.point} {len(seen)}"

    table = HookTable()
    table.add(Hook("mine", note, context), at=TurnBegun)
    hooks, _ = runner(table)
    await hooks.ask(SAMPLES[TurnBegun])
    await hooks.ask(SAMPLES[TurnBegun])
    assert seen == ["mine at turn_start 0", "mine at turn_start 1"]


# What hooks are given and give.


async def test_what_a_hook_changes_in_place_a_later_check_does_not_see() -> None:
    seen: list[object] = []

    async def change(called: ToolCalled, _: object) -> GoOn:
        called.arguments["env"]["A"] = "2"  # pyright: ignore[reportIndexIssue, reportOptionalSubscript] - that is the point
        called.arguments["command"] = "rm"  # pyright: ignore[reportIndexIssue] - that is the point
        return GoOn()

    table = HookTable()
    put(table, ToolCalled, Hook("bad", change), Hook("check", gives(GoOn(), seen=seen)))
    hooks, failures = runner(table)
    assert (await hooks.ask(CALLED), failures) == (GoOn(), [])
    assert seen == [CALLED]
    assert CALLED.arguments == {"env": {"A": "1"}}


async def test_what_a_hook_does_to_messages_stays_with_it() -> None:
    async def change(built: ContextBuilt, _: object) -> GoOn:
        for message in built.messages:
            for one in getattr(message, "tool_calls", ()):
                one.arguments.clear()
            details = getattr(message, "details", None)
            if details is not None:
                details.clear()
        return GoOn()

    table = HookTable()
    table.add(Hook("bad", change), at=ContextBuilt)
    hooks, failures = runner(table)
    built = SAMPLES[ContextBuilt]
    before = repr(built)
    assert (await hooks.ask(built), failures) == (GoOn(), [])
    assert repr(built) == before
    assert ANSWER.tool_calls[0].arguments == {"command": "ls", "env": {"A": "1"}}


@pytest.mark.parametrize(
    ("point", "outcome", "why"),
    [
        (
            InputTyped,
            InputReplaced(content="words"),  # pyright: ignore[reportArgumentType] - wrong on purpose
            "content must be tuple[Text | Image | File, ...]",
        ),
        (ToolCalled, ArgumentsReplaced(arguments=[1]), "arguments must be a JSON object"),  # pyright: ignore[reportArgumentType] - wrong on purpose
        (ToolReturned, ResultReplaced(details={"a": object()}), "details must be JSON"),  # pyright: ignore[reportArgumentType] - wrong on purpose
        (
            HeadersBuilt,
            HeadersChanged(headers={"a": 1}),  # pyright: ignore[reportArgumentType] - wrong on purpose
            "headers must be Mapping[str, str | None]",
        ),
        (ContextBuilt, ContextReplaced(messages=("a",)), "messages must be tuple["),  # pyright: ignore[reportArgumentType] - wrong on purpose
        (ToolCalled, ToolBlocked(reason=None), "reason must be str"),  # pyright: ignore[reportArgumentType] - wrong on purpose
    ],
    ids=["content", "arguments", "details", "headers", "messages", "reason"],
)
async def test_an_answer_of_wrong_values_is_a_failure(
    point: Any, outcome: object, why: str
) -> None:
    table = HookTable()
    table.add(Hook("bad", gives(outcome)), at=point)
    hooks, failures = runner(table)
    given = await hooks.ask(SAMPLES[point])
    assert isinstance(given, ToolBlocked if point is ToolCalled else GoOn)
    assert why in failures[0][2]


async def test_headers_of_several_hooks_are_put_together() -> None:
    table = HookTable()
    put(
        table,
        HeadersBuilt,
        Hook("a", gives(HeadersChanged(headers={"x-a": None, "x-b": "1"}))),
        Hook("b", gives(HeadersChanged(headers={"x-b": "2", "x-c": "3"}))),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(SAMPLES[HeadersBuilt]) == HeadersChanged(
        headers={"x-a": None, "x-b": "2", "x-c": "3"}
    )


async def test_a_value_that_nobody_is_asked_about_is_named() -> None:
    table = HookTable()
    with pytest.raises(UsageError, match="is no point of hooks; there are CommandTyped"):
        table.add(Hook("a", gives(None)), at=GoOn)


async def test_the_hooks_of_one_owner_go_together() -> None:
    seen: list[object] = []
    table = HookTable()
    put(
        table,
        TurnBegun,
        Hook("a", gives(None, seen=seen)),
        Hook("b", gives(None, seen=seen)),
    )
    table.add(Hook("a", gives(ToolBlocked(reason="no"))), at=ToolCalled)
    hooks, _ = runner(table)
    table.remove("a")
    await hooks.ask(SAMPLES[TurnBegun])
    assert (len(seen), await hooks.ask(CALLED)) == (1, GoOn())


async def test_several_values_are_asked_about_at_once() -> None:
    """Calls that run side by side do not wait for one another's checks."""
    here, there = anyio.Event(), anyio.Event()

    async def meet(called: ToolCalled, _: object) -> GoOn:
        mine, other = (here, there) if called.tool == "a" else (there, here)
        mine.set()
        await other.wait()
        return GoOn()

    table = HookTable()
    table.add(Hook("meet", meet), at=ToolCalled)
    hooks, failures = runner(table)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for tool in ("a", "b"):
                group.start_soon(hooks.ask, replace(CALLED, tool=tool))
    assert failures == []
