"""Hooks of a session: how their outcomes compose, and that a hook that fails costs only its own effect."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from agent_core.hooks import (
    ArgumentsReplaced,
    Compacting,
    CompactionCancelled,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    Hook,
    HookRunner,
    HookTable,
    InputHandled,
    InputReplaced,
    InputTyped,
    ResultReplaced,
    RunPrepared,
    RunPreparing,
    SummaryGiven,
    ToolBlocked,
    ToolCalled,
    ToolReturned,
)
from agent_core.kernel import ToolCallId
from agent_core.messages import CustomMessage, UserMessage
from tests.support.hook_functions import gives, hangs, raises, runner, text
from tests.support.sessions import Bench


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
        reason="manual", messages=(), previous_summary=None, instructions=None, tokens_before=9
    )


# How outcomes compose, asked directly.


async def test_input_is_a_chain_and_later_hooks_see_the_new_words() -> None:
    seen: list[object] = []
    table = HookTable()
    table.input.extend(
        [
            Hook("a", gives(InputReplaced(content=text("a")), seen=seen)),
            Hook("b", gives(GoOn(), seen=seen)),
            Hook("c", gives(InputReplaced(content=text("c")), seen=seen)),
        ]
    )
    hooks, _ = runner(table)
    assert await hooks.input_typed(InputTyped(content=text("typed"))) == InputReplaced(
        content=text("c")
    )
    assert seen == [InputTyped(content=text(one)) for one in ("typed", "a", "a")]


async def test_handled_input_stops_the_chain() -> None:
    seen: list[object] = []
    table = HookTable()
    table.input.extend([Hook("a", gives(InputHandled())), Hook("b", gives(GoOn(), seen=seen))])
    hooks, _ = runner(table)
    assert await hooks.input_typed(InputTyped(content=text("x"))) == InputHandled()
    assert seen == []


async def test_before_agent_start_chains_the_prompt_and_collects_messages() -> None:
    seen: list[object] = []
    one, two = (
        CustomMessage(custom_type="note", content=text(words), display=True, at_ms=0)
        for words in ("one", "two")
    )
    table = HookTable()
    table.before_agent_start.extend(
        [
            Hook("a", gives(RunPrepared(system="base+a", messages=(one,)), seen=seen)),
            Hook("b", gives(RunPrepared(messages=(two,)), seen=seen)),
            Hook("c", gives(GoOn(), seen=seen)),
        ]
    )
    hooks, _ = runner(table)
    assert await hooks.run_preparing(preparing()) == RunPrepared(
        system="base+a", messages=(one, two)
    )
    assert [one.system for one in seen if isinstance(one, RunPreparing)] == [
        "base",
        "base+a",
        "base+a",
    ]


async def test_context_is_a_chain() -> None:
    first, second = (UserMessage(content=text(words), at_ms=0) for words in ("1", "2"))

    async def add(built: ContextBuilt) -> ContextReplaced:
        return ContextReplaced(messages=(*built.messages, second))

    table = HookTable()
    table.context.extend([Hook("a", add), Hook("b", gives(GoOn())), Hook("c", add)])
    hooks, _ = runner(table)
    assert await hooks.context_built(ContextBuilt(messages=(first,))) == ContextBuilt(
        messages=(first, second, second)
    )


async def test_tool_call_chains_arguments_and_the_first_block_stops() -> None:
    seen: list[object] = []
    table = HookTable()
    table.tool_call.extend(
        [
            Hook("a", gives(ArgumentsReplaced(arguments={"command": "ls"}))),
            Hook("b", gives(ToolBlocked(reason="no"), seen=seen)),
            Hook("c", gives(GoOn(), seen=seen)),
        ]
    )
    hooks, _ = runner(table)
    assert await hooks.tool_called(called(command="rm")) == ToolBlocked(reason="no")
    assert seen == [called(command="ls")]
    del table.tool_call[1]
    assert await hooks.tool_called(called(command="rm")) == ArgumentsReplaced(
        arguments={"command": "ls"}
    )


async def test_tool_result_is_a_chain_part_by_part() -> None:
    table = HookTable()
    table.tool_result.extend(
        [
            Hook("a", gives(ResultReplaced(content=text("new")))),
            Hook("b", gives(ResultReplaced(details={"exit_code": 1}))),
            Hook("c", gives(ResultReplaced(is_error=True))),
        ]
    )
    hooks, _ = runner(table)
    assert await hooks.tool_returned(returned(exit_code=0)) == ResultReplaced(
        content=text("new"), details={"exit_code": 1}, is_error=True
    )


async def test_the_first_that_decides_a_compaction_wins() -> None:
    seen: list[object] = []
    table = HookTable()
    table.session_before_compact.extend(
        [
            Hook("a", gives(GoOn())),
            Hook("b", gives(SummaryGiven(summary="mine"))),
            Hook("c", gives(CompactionCancelled(), seen=seen)),
        ]
    )
    hooks, _ = runner(table)
    assert await hooks.compacting(compacting()) == SummaryGiven(summary="mine")
    assert seen == []


async def ask(hooks: HookRunner, point: str) -> object:
    match point:
        case "input":
            return await hooks.input_typed(InputTyped(content=text("x")))
        case "before_agent_start":
            return await hooks.run_preparing(preparing())
        case "context":
            return await hooks.context_built(ContextBuilt(messages=()))
        case "tool_call":
            return await hooks.tool_called(called())
        case "tool_result":
            return await hooks.tool_returned(returned())
        case _:
            return await hooks.compacting(compacting())


UNTOUCHED = {
    "input": GoOn(),
    "before_agent_start": RunPrepared(),
    "context": ContextBuilt(messages=()),
    "tool_call": GoOn(),
    "tool_result": GoOn(),
    "session_before_compact": GoOn(),
}
BLOCKED = ToolBlocked(
    reason="bash was not run: the check 'bad' failed, and a check that fails means no."
)


@pytest.mark.parametrize("point", list(UNTOUCHED))
async def test_without_hooks_nothing_changes(point: str) -> None:
    hooks, failures = runner(HookTable())
    assert (await ask(hooks, point), failures) == (UNTOUCHED[point], [])


@pytest.mark.parametrize("point", list(UNTOUCHED))
@pytest.mark.parametrize(
    ("hook", "error"),
    [
        pytest.param(raises(RuntimeError("boom")), "RuntimeError: boom", id="raises"),
        pytest.param(raises(TimeoutError("mine")), "TimeoutError: mine", id="own-timeout"),
        pytest.param(raises(SystemExit(3)), "SystemExit: 3", id="exits"),
        pytest.param(hangs, "no answer within 0.02 s", id="hangs"),
        pytest.param(lambda _: GoOn(), None, id="not-async"),
        pytest.param(gives(None), "gave None, which is no outcome of", id="forgot-return"),
        pytest.param(gives({"block": True}), "gave {'block': True}, which", id="foreign-value"),
    ],
)
async def test_a_failing_hook_is_reported_and_costs_its_own_effect_only(
    point: str, hook: Callable[..., Awaitable[Any]], error: str | None
) -> None:
    seen: list[object] = []
    table = HookTable()
    at = getattr(table, point)
    at += [Hook("bad", hook), Hook("good", gives(GoOn(), seen=seen))]
    hooks, failures = runner(table, timeout_s=0.02)
    with anyio.fail_after(5):
        outcome = await ask(hooks, point)
    assert outcome == (BLOCKED if point == "tool_call" else UNTOUCHED[point])
    # A check that fails means no: nobody else is asked then.
    assert len(seen) == (0 if point == "tool_call" else 1)
    ((name, where, told),) = failures
    assert (name, where) == ("bad", point)
    assert told.startswith(error or "TypeError")


async def test_an_outcome_of_another_point_does_not_count() -> None:
    table = HookTable()
    table.tool_call.append(Hook("bad", gives(InputHandled())))
    hooks, failures = runner(table)
    assert await hooks.tool_called(called()) == BLOCKED
    assert failures == [
        ("bad", "tool_call", "gave InputHandled(), which is no outcome of tool_call")
    ]


async def test_cancelling_the_run_ends_a_hook_and_is_no_failure() -> None:
    table = HookTable()
    table.context.append(Hook("slow", hangs))
    hooks, failures = runner(table)
    with anyio.move_on_after(0.01) as scope:
        await hooks.context_built(ContextBuilt(messages=()))
    assert scope.cancelled_caught
    assert failures == []


async def test_the_table_may_grow_while_hooks_are_asked() -> None:
    table = HookTable()

    async def grow(_: object) -> GoOn:
        table.context.append(Hook("late", gives(ContextReplaced(messages=()))))
        return GoOn()

    table.context.append(Hook("a", grow))
    hooks, _ = runner(table)
    built = ContextBuilt(messages=(UserMessage(content=text("x"), at_ms=0),))
    assert await hooks.context_built(built) == built
    assert await hooks.context_built(built) == ContextBuilt(messages=())


# The same through a session.


async def go(b: Bench, words: str = "go") -> None:
    await b.session.prompt(words)
    await b.idle()
