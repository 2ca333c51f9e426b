"""The runner turns every call into exactly one outcome, whatever tools, hooks and policies do."""

import anyio
import pytest
from typing_extensions import override

from agent_core.hooks import (
    ArgumentsReplaced,
    GoOn,
    Hook,
    HookTable,
    ResultReplaced,
    ToolBlocked,
    ToolCalled,
    ToolReturned,
)
from agent_core.kernel.errors import ToolError
from agent_core.messages import Image, Text
from agent_core.tools import ToolResult, error_result, text_result
from agent_core.tools.runner import ToolOutcome
from agent_core.workspace import Allowed, CallRefused
from tests.support.workspace.tools import FunctionTool, Hold, echo
from tests.tools.conftest import Bench, words


class Policy:
    """Gives one verdict, or fails."""

    def __init__(self, verdict) -> None:
        self._verdict = verdict
        self.asked: list[dict[str, object]] = []

    async def judge(self, **asked):
        self.asked.append(asked)
        if isinstance(self._verdict, Exception):
            raise self._verdict
        return self._verdict


def _tool(bench: Bench, work, name: str = "probe", **more) -> FunctionTool:
    tool = FunctionTool(name, work, **more)
    bench.tools = {name: tool}
    return tool


def _hook(table: HookTable, at, run) -> None:
    table.add(Hook("probe", run), at=at)


async def _fine(arguments, _context):
    return text_result("fine", details={"seen": dict(arguments)})


async def test_a_result_comes_through(bench: Bench) -> None:
    bench.tools = {"echo": echo()}
    outcome = await bench.run("echo", text="hi")
    assert outcome == ToolOutcome(
        status="ok", result=text_result("echo:hi"), duration_ms=outcome.duration_ms
    )
    assert outcome.duration_ms is not None
    assert bench.begun == [{"text": "hi"}]


async def test_an_unknown_tool_is_told_with_those_there_are(bench: Bench) -> None:
    bench.tools = {"read": bench.tools["read"], "bash": bench.tools["bash"]}
    outcome = await bench.run("fly")
    assert outcome == ToolOutcome.without_run("error", "Tool fly not found. There are: read, bash.")
    assert (outcome.duration_ms, outcome.result.is_error, bench.begun) == (None, True, [])


async def test_arguments_that_were_no_json_are_told(bench: Bench) -> None:
    outcome = await bench.call("read", {}, "not a JSON object: {path")
    assert (outcome.status, words(outcome)) == (
        "error",
        "Invalid arguments for tool read: not a JSON object: {path",
    )


@pytest.mark.parametrize(
    "arguments",
    [{"path": "\ud800/x"}, {"deep": [{"name": "a\udfff"}]}, {"\ud800": 1}],
    ids=["value", "deep", "key"],
)
async def test_half_a_character_reaches_no_tool_of_anybody(bench: Bench, arguments) -> None:
    _tool(bench, _fine)
    outcome = await bench.call("probe", arguments)
    assert (outcome.status, bench.begun) == ("error", [])
    assert "half of a character" in words(outcome)

    async def replace(_asked):
        return ArgumentsReplaced(arguments=arguments)

    _hook(bench.hooks, ToolCalled, replace)
    outcome = await bench.run("probe", a=1)
    assert (outcome.status == "ok", bench.begun) == (False, [])


async def test_a_hook_blocks(bench: Bench) -> None:
    tool = _tool(bench, _fine)

    async def block(called, _: object):
        return ToolBlocked(reason="" if called.arguments else "not now")

    _hook(bench.hooks, ToolCalled, block)
    assert await bench.run("probe") == ToolOutcome.without_run("blocked", "not now")
    outcome = await bench.run("probe", a=1)
    assert outcome == ToolOutcome.without_run("blocked", "Tool execution was blocked")
    assert (tool.calls, bench.begun) == ([], [])


async def test_a_hook_that_fails_blocks(bench: Bench) -> None:
    tool = _tool(bench, _fine)

    async def fail(_called, _: object):
        message = "broken"
        raise RuntimeError(message)

    _hook(bench.hooks, ToolCalled, fail)
    outcome = await bench.run("probe")
    assert outcome.status == "blocked"
    assert tool.calls == []


async def test_hooks_change_arguments_and_they_are_checked_again(bench: Bench) -> None:
    path = bench.put("b.txt", "b")

    async def redirect(_called, _: object):
        return ArgumentsReplaced(arguments={"path": bench.options.get("to", "b.txt")})

    _hook(bench.hooks, ToolCalled, redirect)
    policy = bench.policy = Policy(Allowed())
    assert words(await bench.run("read", path="a.txt")) == path.read_text()
    assert bench.begun == [{"path": "b.txt"}]
    assert policy.asked == [
        {
            "call": "call-1",
            "run": None,
            "tool": "read",
            "kind": "read",
            "arguments": {"path": "b.txt"},
        }
    ]
    bench.options["to"] = 7
    outcome = await bench.run("read", path="a.txt")
    assert outcome.status == "error"
    assert words(outcome).startswith('Validation failed for tool "read"')


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (CallRefused(reason="ask first"), "ask first"),
        (RuntimeError("crash"), "the permission check failed (RuntimeError), which means no"),
        (TimeoutError(), "the permission check failed (TimeoutError), which means no"),
    ],
)
async def test_without_a_yes_nothing_runs(bench: Bench, verdict, text: str) -> None:
    tool = _tool(bench, _fine)
    bench.policy = Policy(verdict)
    assert await bench.run("probe") == ToolOutcome.without_run("blocked", text)
    assert (tool.calls, bench.begun) == ([], [])


async def test_an_error_on_purpose_is_told_as_it_is(bench: Bench) -> None:
    async def refuse(_arguments, _context):
        message = "try it so"
        raise ToolError(message)

    _tool(bench, refuse)
    outcome = await bench.run("probe")
    assert (outcome.status, outcome.result) == ("error", error_result("try it so"))


async def test_what_happened_is_told_without_the_advice_for_the_model(bench: Bench) -> None:
    async def refuse(_arguments, _context):
        raise ToolError("a.py was not changed.", advice=" Read it again.")

    _tool(bench, refuse)
    outcome = await bench.run("probe")
    assert words(outcome) == "a.py was not changed. Read it again."
    assert outcome.result.details == {"happened": "a.py was not changed."}
    bench.policy = Policy(CallRefused(reason="Denied. Go on.", happened="Denied."))
    blocked = await bench.run("probe")
    assert (words(blocked), blocked.result.details) == ("Denied. Go on.", {"happened": "Denied."})


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ZeroDivisionError("by zero"), "Tool probe failed: ZeroDivisionError: by zero"),
        (SystemExit(3), "Tool probe failed: SystemExit: 3"),
        (ExceptionGroup("many", [ToolError("inside")]), "inside"),
    ],
)
async def test_an_accident_is_a_result(bench: Bench, error, text: str) -> None:
    async def fail(_arguments, _context):
        raise error

    _tool(bench, fail)
    outcome = await bench.run("probe")
    assert (outcome.status, words(outcome)) == ("error", text)


class Clumsy(FunctionTool):
    """A tool whose smaller methods fail."""

    @override
    def title(self, arguments):
        raise KeyError(arguments)

    @override
    def check(self, arguments):
        raise KeyError(arguments)


async def test_a_clumsy_tool_hurts_nobody(bench: Bench) -> None:
    bench.tools = {"clumsy": Clumsy("clumsy", _fine)}
    outcome = await bench.run("clumsy")
    assert words(outcome).startswith("Tool clumsy failed: KeyError")


async def test_cancellation_goes_up(bench: Bench) -> None:
    hold = Hold()
    bench.tools = {"hold": hold.tool}
    ended: list[ToolOutcome] = []

    async def run() -> None:
        ended.append(await bench.run("hold"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await hold.entered.wait()
        group.cancel_scope.cancel()
    assert (ended, hold.cancelled) == ([], True)


async def test_hooks_see_and_change_the_result(bench: Bench) -> None:
    _tool(bench, _fine)
    seen = []

    async def change(returned, _: object):
        seen.append((returned.tool, returned.arguments, returned.content, returned.is_error))
        return ResultReplaced(content=(Text(text="changed"),))

    _hook(bench.hooks, ToolReturned, change)
    outcome = await bench.run("probe", a=1)
    assert seen == [("probe", {"a": 1}, (Text(text="fine"),), False)]
    assert outcome.result == text_result("changed", details={"seen": {"a": 1}})


async def test_a_hook_can_make_a_result_an_error(bench: Bench) -> None:
    _tool(bench, _fine)

    async def change(_returned, _: object):
        return ResultReplaced(is_error=True)

    _hook(bench.hooks, ToolReturned, change)
    assert (await bench.run("probe")).status == "error"


async def test_hooks_that_fail_leave_the_result(bench: Bench) -> None:
    _tool(bench, _fine)

    async def fail(_returned, _: object):
        message = "broken"
        raise RuntimeError(message)

    _hook(bench.hooks, ToolReturned, fail)
    assert words(await bench.run("probe")) == "fine"


async def test_too_much_is_cut_and_says_so(bench: Bench) -> None:
    async def flood(_arguments, _context):
        picture = Image(mime="image/png", data="x" * 100_000)
        return ToolResult(content=(Text(text="é" * 40_000), picture, Text(text="y" * 40_000)))

    _tool(bench, flood)
    outcome = await bench.run("probe")
    assert len(words(outcome).encode()) < 51_200 + 100
    assert words(outcome).endswith("\n\n[Output cut: the first 50.0KB of 117.2KB are shown.]")
    assert [type(part) for part in outcome.result.content] == [Text, Image, Text]


async def test_broken_characters_are_replaced_everywhere(bench: Bench) -> None:
    async def broken(_arguments, _context):
        return text_result("a\ud83d", details={"k\udc00": ["\ud83d", 1, None, {"x": True}]})

    _tool(bench, broken)
    outcome = await bench.run("probe")
    assert outcome.result == text_result(
        "a\ufffd", details={"k\ufffd": ["\ufffd", 1, None, {"x": True}]}
    )


async def test_live_output_ends_with_the_call(bench: Bench) -> None:
    kept = []

    async def show(_arguments, context):
        context.output("now")
        context.output("")
        kept.append(context.output)
        return text_result("done")

    _tool(bench, show)
    await bench.run("probe")
    kept[0]("too late")
    assert bench.shown == ["now"]


async def test_what_a_tool_is_can_be_asked(bench: Bench) -> None:
    runner = bench.runner()
    assert [runner.parallel_safe(name) for name in ("read", "write", "bash", "no")] == [
        True,
        False,
        False,
        False,
    ]
    assert [runner.runs_processes(name) for name in ("read", "bash", "no")] == [False, True, False]


async def test_tools_may_change_between_calls(bench: Bench) -> None:
    runner = bench.runner()
    assert runner.parallel_safe("late") is False
    bench.tools["late"] = echo("late", parallel_safe=True)
    assert runner.parallel_safe("late") is True


async def test_a_hook_that_goes_on_changes_nothing(bench: Bench) -> None:
    _tool(bench, _fine)

    async def go_on(_value, _: object):
        return GoOn()

    _hook(bench.hooks, ToolCalled, go_on)
    _hook(bench.hooks, ToolReturned, go_on)
    assert words(await bench.run("probe")) == "fine"


async def test_a_result_of_words_has_no_details() -> None:
    assert text_result("words") == ToolResult(content=(Text(text="words"),), details=None)
    assert error_result("words").is_error is True
