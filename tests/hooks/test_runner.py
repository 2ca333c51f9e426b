"""Hooks of a session: how their outcomes compose, and that a hook that fails costs only its own effect."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from agent_core.hooks import (
    POINTS,
    ArgumentsReplaced,
    CommandBlocked,
    CommandTyped,
    Compacting,
    CompactionCancelled,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    Hook,
    HookInput,
    HookTable,
    InputHandled,
    InputReplaced,
    InputTyped,
    Point,
    ResultReplaced,
    RunPrepared,
    RunPreparing,
    SummaryGiven,
    ToolBlocked,
    ToolCalled,
    ToolReturned,
)
from agent_core.kernel import EntryId, ToolCallId
from agent_core.messages import CustomMessage, UserMessage
from tests.support.hooks.hook_functions import gives, hangs, put, raises, runner, text
from tests.support.hooks.hook_samples import SAMPLES


def called(**arguments: str) -> ToolCalled:
    return ToolCalled(call=ToolCallId("c1"), tool="bash", arguments=arguments)


def returned(words: str = "output", **details: int) -> ToolReturned:
    return ToolReturned(
        call=ToolCallId("c1"),
        tool="bash",
        arguments={},
        content=text(words),
        details=details,
        is_error=False,
    )


def preparing() -> RunPreparing:
    return RunPreparing(content=text("hi"), system="base")


def compacting() -> Compacting:
    return Compacting(
        reason="manual",
        messages=(),
        previous_summary=None,
        instructions=None,
        tokens_before=9,
        first_kept=EntryId("e1"),
    )


async def test_input_is_a_chain_and_later_hooks_see_the_new_words() -> None:
    seen: list[object] = []
    table = HookTable()
    put(
        table,
        InputTyped,
        Hook("a", gives(InputReplaced(content=text("a")), seen=seen)),
        Hook("b", gives(GoOn(), seen=seen)),
        Hook("c", gives(InputReplaced(content=text("c")), seen=seen)),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(InputTyped(content=text("typed"))) == InputReplaced(content=text("c"))
    assert seen == [InputTyped(content=text(one)) for one in ("typed", "a", "a")]


async def test_handled_input_stops_the_chain() -> None:
    seen: list[object] = []
    table = HookTable()
    put(table, InputTyped, Hook("a", gives(InputHandled())), Hook("b", gives(GoOn(), seen=seen)))
    hooks, _ = runner(table)
    assert await hooks.ask(InputTyped(content=text("x"))) == InputHandled()
    assert seen == []


async def test_before_agent_start_chains_the_prompt_and_collects_messages() -> None:
    seen: list[object] = []
    one, two = (
        CustomMessage(custom_type="note", content=text(words), display=True, at_ms=0)
        for words in ("one", "two")
    )
    table = HookTable()
    put(
        table,
        RunPreparing,
        Hook("a", gives(RunPrepared(system="base+a", messages=(one,)), seen=seen)),
        Hook("b", gives(RunPrepared(messages=(two,)), seen=seen)),
        Hook("c", gives(GoOn(), seen=seen)),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(preparing()) == RunPrepared(system="base+a", messages=(one, two))
    assert [one.system for one in seen if isinstance(one, RunPreparing)] == [
        "base",
        "base+a",
        "base+a",
    ]


async def test_context_is_a_chain() -> None:
    first, second = (UserMessage(content=text(words), at_ms=0) for words in ("1", "2"))

    async def add(built: ContextBuilt, _: object) -> ContextReplaced:
        return ContextReplaced(messages=(*built.messages, second))

    table = HookTable()
    put(table, ContextBuilt, Hook("a", add), Hook("b", gives(GoOn())), Hook("c", add))
    hooks, _ = runner(table)
    assert await hooks.ask(ContextBuilt(messages=(first,))) == ContextReplaced(
        messages=(first, second, second)
    )


async def test_tool_call_chains_arguments_and_the_first_block_stops() -> None:
    seen: list[object] = []
    table = HookTable()
    put(
        table,
        ToolCalled,
        Hook("a", gives(ArgumentsReplaced(arguments={"command": "ls"}))),
        Hook("b", gives(ToolBlocked(reason="no"), seen=seen)),
        Hook("c", gives(GoOn(), seen=seen)),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(called(command="rm")) == ToolBlocked(reason="no")
    assert seen == [called(command="ls")]
    table.remove("b")
    assert await hooks.ask(called(command="rm")) == ArgumentsReplaced(arguments={"command": "ls"})


async def test_tool_result_is_a_chain_part_by_part() -> None:
    table = HookTable()
    put(
        table,
        ToolReturned,
        Hook("a", gives(ResultReplaced(content=text("new")))),
        Hook("b", gives(ResultReplaced(details={"exit_code": 1}))),
        Hook("c", gives(ResultReplaced(is_error=True))),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(returned(exit_code=0)) == ResultReplaced(
        content=text("new"), details={"exit_code": 1}, is_error=True
    )


async def test_the_last_summary_of_a_compaction_counts() -> None:
    seen: list[object] = []
    table = HookTable()
    put(
        table,
        Compacting,
        Hook("a", gives(SummaryGiven(summary="one"))),
        Hook("b", gives(SummaryGiven(summary="two"))),
        Hook("c", gives(GoOn(), seen=seen)),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(compacting()) == SummaryGiven(summary="two")
    assert seen == [compacting()]


async def test_the_first_no_to_a_compaction_stops() -> None:
    seen: list[object] = []
    table = HookTable()
    put(
        table,
        Compacting,
        Hook("a", gives(SummaryGiven(summary="mine"))),
        Hook("b", gives(CompactionCancelled())),
        Hook("c", gives(GoOn(), seen=seen)),
    )
    hooks, _ = runner(table)
    assert await hooks.ask(compacting()) == CompactionCancelled()
    assert seen == []


BLOCKED = ToolBlocked(
    reason="bash was not run: the check 'bad' failed, and a check that fails means no."
)
REFUSED: dict[type[HookInput[Any]], object] = {
    ToolCalled: BLOCKED,
    CommandTyped: CommandBlocked(
        reason="the command was not run: the check 'bad' failed, and a check that fails means no."
    ),
}
"""Points where a failure means no."""
everywhere = pytest.mark.parametrize(
    "point", [pytest.param(one, id=one.name) for one in POINTS.values()]
)


@everywhere
async def test_without_hooks_nothing_changes(point: Point) -> None:
    hooks, failures = runner(HookTable())
    assert not hooks.listens(point.input)
    assert (await hooks.ask(SAMPLES[point.input]), failures) == (GoOn(), [])


@everywhere
@pytest.mark.parametrize(
    ("hook", "error"),
    [
        pytest.param(raises(RuntimeError("boom")), "RuntimeError: boom", id="raises"),
        pytest.param(raises(TimeoutError("mine")), "TimeoutError: mine", id="own-timeout"),
        pytest.param(raises(SystemExit(3)), "SystemExit: 3", id="exits"),
        pytest.param(hangs, "no answer within 0.02 s", id="hangs"),
        pytest.param(gives({"block": True}), "run gave {'block': True}, which", id="foreign-value"),
    ],
)
async def test_a_failing_hook_is_reported_and_costs_its_own_effect_only(
    point: Point, hook: Callable[..., Awaitable[Any]], error: str
) -> None:
    seen: list[object] = []
    table = HookTable()
    put(table, point.input, Hook("bad", hook), Hook("good", gives(GoOn(), seen=seen)))
    hooks, failures = runner(table, limit_s=0.02)
    with anyio.fail_after(5):
        outcome = await hooks.ask(SAMPLES[point.input])
    assert outcome == REFUSED.get(point.input, GoOn())
    # A check that fails means no: nobody else is asked then.
    assert len(seen) == (0 if point.input in REFUSED else 1)
    ((name, where, told),) = failures
    assert (name, where) == ("bad", point.name)
    assert told.startswith(error)


@everywhere
async def test_silence_is_consent_only_where_a_failure_is_none(point: Point) -> None:
    table = HookTable()
    table.add(Hook("bad", gives(None)), at=point.input)
    hooks, failures = runner(table)
    assert await hooks.ask(SAMPLES[point.input]) == REFUSED.get(point.input, GoOn())
    odd = (
        "bad",
        point.name,
        f"run gave no answer to {point.name}: return GoOn() where nothing is to change",
    )
    assert failures == ([odd] if point.input in REFUSED else [])


async def test_an_outcome_of_another_point_does_not_count() -> None:
    table = HookTable()
    table.add(Hook("bad", gives(InputHandled())), at=ToolCalled)
    hooks, failures = runner(table)
    assert await hooks.ask(called()) == BLOCKED
    assert failures == [
        ("bad", "tool_call", "run gave InputHandled(), which is no outcome of tool_call")
    ]


async def test_cancelling_the_run_ends_a_hook_and_is_no_failure() -> None:
    table = HookTable()
    table.add(Hook("slow", hangs), at=ContextBuilt)
    hooks, failures = runner(table)
    with anyio.move_on_after(0.01) as scope:
        await hooks.ask(ContextBuilt(messages=()))
    assert scope.cancelled_caught
    assert failures == []


async def test_the_table_may_grow_while_hooks_are_asked() -> None:
    table = HookTable()

    async def grow(*_: object) -> GoOn:
        table.add(Hook("late", gives(ContextReplaced(messages=()))), at=ContextBuilt)
        return GoOn()

    table.add(Hook("a", grow), at=ContextBuilt)
    hooks, _ = runner(table)
    built = ContextBuilt(messages=(UserMessage(content=text("x"), at_ms=0),))
    assert await hooks.ask(built) == GoOn()
    assert await hooks.ask(built) == ContextReplaced(messages=())
