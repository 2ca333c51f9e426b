"""Hooks of a session: how their outcomes compose, and that a hook that fails costs only its own effect."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import pytest

from agent_core.compaction import CompactionSettings
from agent_core.events import (
    CompactionEnded,
    CompactionStarted,
    ExtensionError,
    RunEnded,
    ToolEnded,
    ToolRunning,
)
from agent_core.hooks import (
    ArgumentsReplaced,
    Compacting,
    CompactionCancelled,
    ContextBuilt,
    ContextReplaced,
    GoOn,
    Hook,
    HookFailure,
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
from agent_core.messages import CustomMessage, Text, UserMessage, text_of
from agent_core.providers import ModelFacts
from agent_core.session.parts import SessionOptions
from agent_core.tools import ToolResult, text_result
from tests.support.scripted_model import ScriptedModel, call, say
from tests.support.sessions import Bench, bench
from tests.support.tools import FunctionTool, echo

SMALL = ModelFacts(
    provider="scripted",
    id="model-1",
    api="embedded",
    name="Small",
    context_window=8_000,
    max_tokens=1_000,
)


def gives(outcome: object, *, seen: list[object] | None = None) -> Callable[..., Awaitable[object]]:
    """Make a hook function that notes what it is asked and always gives the same."""

    async def run(asked: object) -> object:
        if seen is not None:
            seen.append(asked)
        return outcome

    return run


def raises(error: BaseException) -> Callable[..., Awaitable[object]]:
    async def run(_: object) -> object:
        raise error

    return run


async def hangs(_: object) -> object:
    await anyio.sleep_forever()
    return GoOn()


def text(words: str) -> tuple[Text, ...]:
    return (Text(text=words),)


def bash(output: str = "output", **details: object) -> FunctionTool:
    async def work(*_: object) -> ToolResult:
        return text_result(output, details=details or None)

    return FunctionTool("bash", work, kind="execute")


def runner(
    table: HookTable, *, timeout_s: float = 5.0
) -> tuple[HookRunner, list[tuple[str, str, str]]]:
    failures: list[tuple[str, str, str]] = []

    def report(failure: HookFailure) -> None:
        failures.append((failure.hook, failure.point, failure.error))

    return HookRunner(table, report=report, timeout_s=timeout_s), failures


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
    point: str, hook: Callable[..., Awaitable[object]], error: str | None
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


async def test_a_hook_that_has_nothing_to_say_lets_the_call_run() -> None:
    tool, table = bash(), HookTable()
    table.tool_call.append(Hook("gate", gives(GoOn())))
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[tool], hooks=table) as b:
        await go(b)
        assert b.results() == ["output"]
        assert len(tool.calls) == 1


async def test_a_blocked_call_does_not_run_and_the_model_is_told_why() -> None:
    tool, table = bash(), HookTable()
    table.tool_call.append(Hook("gate", gives(ToolBlocked(reason="需要确认"))))
    model = ScriptedModel([call("bash"), say("ok")])
    async with bench(model, tools=[tool], hooks=table) as b:
        await go(b)
        assert tool.calls == []
        assert text_of(model.requests[1].messages[-1].content) == "需要确认"
        ended = [e for e in b.seen() if isinstance(e, ToolEnded)]
        assert [(e.status, e.duration_ms) for e in ended] == [("blocked", None)]
        assert not any(isinstance(e, ToolRunning) for e in b.seen())


async def test_of_two_hooks_the_second_can_block() -> None:
    tool, table = bash(), HookTable()
    table.tool_call.extend(
        [
            Hook("hook_a", gives(GoOn())),
            Hook("hook_b", gives(ToolBlocked(reason="禁止"))),
        ]
    )
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[tool], hooks=table) as b:
        await go(b)
        assert tool.calls == []
        assert b.results() == ["禁止"]


async def test_arguments_from_a_hook_are_what_runs_and_what_is_told() -> None:
    tool, table = echo(), HookTable()
    table.tool_call.append(Hook("a", gives(ArgumentsReplaced(arguments={"text": "new"}))))
    model = ScriptedModel([call("echo", {"text": "old"}), say("ok")])
    async with bench(model, tools=[tool], hooks=table) as b:
        await go(b)
        assert b.results() == ["echo:new"]
        running = [e.input for e in b.seen() if isinstance(e, ToolRunning)]
        assert running == [{"text": "new"}]


async def test_an_automatic_compaction_can_be_cancelled_and_the_session_stays_as_it_is() -> None:
    seen: list[object] = []
    table = HookTable()
    table.session_before_compact.append(Hook("keep", gives(CompactionCancelled(), seen=seen)))
    long = "word " * 5_000
    options = SessionOptions(compaction=CompactionSettings(keep_recent_tokens=100))
    model = ScriptedModel([say("first"), say(long)], facts=SMALL)
    async with bench(model, hooks=table, options=options) as b:
        await go(b, "one")
        before = b.messages
        await go(b, "two")
        ended = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.aborted, e.summary) for e in ended] == [("threshold", True, None)]
        assert [one.reason for one in seen if isinstance(one, Compacting)] == ["threshold"]
        assert b.messages[: len(before)] == before
        assert text_of(b.messages[-1].content) == long
        assert len(model.requests) == 2
        assert b.session.info.snapshot().state == "idle"


async def test_a_hook_takes_a_secret_out_of_what_the_model_sees() -> None:
    async def redact(result: ToolReturned) -> ResultReplaced:
        return ResultReplaced(
            content=text(text_of(result.content).replace("API_KEY", "[REDACTED]"))
        )

    table = HookTable()
    table.tool_result.append(Hook("redact", redact))
    model = ScriptedModel([call("bash"), say("ok")])
    async with bench(model, tools=[bash("the API_KEY is set")], hooks=table) as b:
        await go(b)
        assert text_of(model.requests[1].messages[-1].content) == "the [REDACTED] is set"
        ended = next(e for e in b.seen() if isinstance(e, ToolEnded))
        assert text_of(ended.content) == "the [REDACTED] is set"


def adds(mark: str) -> Callable[[ToolReturned], Awaitable[ResultReplaced]]:
    async def run(result: ToolReturned) -> ResultReplaced:
        return ResultReplaced(content=text(text_of(result.content) + mark))

    return run


async def test_two_hooks_on_a_result_work_one_after_the_other() -> None:
    table = HookTable()
    table.tool_result.extend([Hook("hook_a", adds("[a]")), Hook("hook_b", adds("[b]"))])
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        await go(b)
        assert b.results() == ["output[a][b]"]


async def test_what_a_hook_does_not_name_stays_in_the_result() -> None:
    table = HookTable()
    table.tool_result.append(Hook("a", gives(ResultReplaced(content=text("changed")))))
    tool = bash("output", exit_code=0)
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[tool], hooks=table) as b:
        await go(b)
        ended = next(e for e in b.seen() if isinstance(e, ToolEnded))
        assert (text_of(ended.content), ended.details, ended.status) == (
            "changed",
            {"exit_code": 0},
            "ok",
        )


async def test_a_hook_adds_to_a_request_and_the_transcript_stays() -> None:
    note = UserMessage(content=text("system reminder"), at_ms=0)

    async def remind(built: ContextBuilt) -> ContextReplaced:
        return ContextReplaced(messages=(*built.messages, note))

    table = HookTable()
    table.context.append(Hook("remind", remind))
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b)
        assert model.requests[0].messages[-1] == note
        assert note not in b.messages


async def test_a_hook_replaces_what_the_user_typed() -> None:
    table = HookTable()
    table.input.append(Hook("translate", gives(InputReplaced(content=text("hello")))))
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b, "你好")
        assert [text_of(m.content) for m in model.requests[0].messages] == ["hello"]


async def test_input_that_a_hook_dealt_with_reaches_no_model() -> None:
    seen: list[object] = []
    table = HookTable()
    table.input.extend([Hook("a", gives(InputHandled())), Hook("b", gives(GoOn(), seen=seen))])
    model = ScriptedModel([say("later")])
    async with bench(model, hooks=table) as b:
        await go(b, "do it yourself")
        assert (seen, model.requests) == ([], [])
        ended = [e.status for e in b.seen() if isinstance(e, RunEnded)]
        assert ended == ["completed"]
        table.input.clear()
        await go(b, "now you")
        assert [text_of(m.content) for m in model.requests[0].messages] == ["now you"]


async def test_steering_is_input_too() -> None:
    table = HookTable()

    async def shout(typed: InputTyped) -> InputReplaced:
        return InputReplaced(content=text(text_of(typed.content).upper()))

    table.input.append(Hook("shout", shout))
    model = ScriptedModel([say("a"), say("b")])
    async with bench(model, hooks=table) as b:
        await b.session.steer("held", if_idle="hold")
        await go(b, "go")
        assert text_of(model.requests[0].messages[-1].content) == "HELD"


async def test_a_message_that_a_hook_adds_is_in_the_context() -> None:
    added = CustomMessage(custom_type="note", content=text("额外上下文"), display=True, at_ms=0)
    table = HookTable()
    table.before_agent_start.append(
        Hook("add", gives(RunPrepared(system="other rules", messages=(added,))))
    )
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b)
        asked = model.requests[0]
        assert [text_of(m.content) for m in asked.messages] == ["go", "额外上下文"]
        assert asked.system == "other rules"


async def test_a_hook_that_crashes_is_told_and_the_next_one_still_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = HookTable()
    table.tool_result.extend(
        [
            Hook("hook_a", raises(RuntimeError("boom"))),
            Hook("hook_b", adds("[b]")),
        ]
    )
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        with caplog.at_level(logging.ERROR):
            await go(b)
        assert b.results() == ["output[b]"]
        told = [e for e in b.seen() if isinstance(e, ExtensionError)]
        assert told == [
            ExtensionError(extension="hook_a", event="tool_result", error="RuntimeError: boom")
        ]


async def test_the_log_says_where_a_hook_crashed(caplog: pytest.LogCaptureFixture) -> None:
    table = HookTable()
    table.tool_result.append(Hook("hook_a", raises(RuntimeError("boom"))))
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        with caplog.at_level(logging.ERROR):
            await go(b)
    (record,) = [one for one in caplog.records if "hook_a" in one.getMessage()]
    assert record.exc_info is not None
    kind, error, stack = record.exc_info
    assert (kind, str(error)) == (RuntimeError, "boom")
    assert stack is not None
    assert stack.tb_next is not None


async def test_a_hook_that_hangs_is_given_up_and_the_result_stays() -> None:
    """Not through a session: its patience is 30 s."""
    table = HookTable()
    table.tool_result.extend([Hook("slow", hangs), Hook("good", adds("[b]"))])
    hooks, failures = runner(table, timeout_s=0.02)
    with anyio.fail_after(5):
        outcome = await hooks.tool_returned(returned("output"))
    assert outcome == ResultReplaced(content=text("output[b]"), details={}, is_error=False)
    assert failures == [("slow", "tool_result", "no answer within 0.02 s")]


async def test_a_failed_compaction_hook_leaves_the_compaction_to_the_model() -> None:
    table = HookTable()
    table.session_before_compact.append(Hook("bad", raises(RuntimeError("boom"))))
    long = "word " * 1_500
    model = ScriptedModel([say(long), say(long), say("## Goal\nx")], facts=SMALL)
    async with bench(model, hooks=table, options=SessionOptions(auto_compact=False)) as b:
        await go(b, "one")
        await go(b, "two")
        await b.session.compact()
        await b.idle()
        assert [type(e) for e in b.seen() if isinstance(e, CompactionStarted | ExtensionError)] == [
            CompactionStarted,
            ExtensionError,
        ]
        assert [e.error for e in b.seen() if isinstance(e, CompactionEnded)] == [None]
