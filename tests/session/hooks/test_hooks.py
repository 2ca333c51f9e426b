"""Hooks in a real session: what they can stop, change and add, and what a failing one costs."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import pytest

from agent_core.compaction import CompactionPolicy
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
    HookTable,
    InputHandled,
    InputReplaced,
    InputTyped,
    ResultReplaced,
    RunPrepared,
    RunPreparing,
    ToolBlocked,
    ToolCalled,
    ToolReturned,
)
from agent_core.kernel import ToolCallId
from agent_core.messages import CustomMessage, UserMessage, text_of
from agent_core.providers import ModelInfo
from agent_core.session.context import SessionOptions
from tests.support.hooks.hook_functions import bash, gives, hangs, put, raises, runner, text
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench, words
from tests.support.workspace.tools import echo

SMALL = ModelInfo(
    provider="scripted",
    id="model-1",
    api="embedded",
    name="Small",
    context_window=8_000,
    max_tokens=1_000,
)


def returned(words: str = "output", **details: int) -> ToolReturned:
    return ToolReturned(
        call=ToolCallId("c1"),
        tool="bash",
        arguments={},
        content=text(words),
        details=details,
        is_error=False,
    )


async def go(b: Bench, words: str = "go") -> None:
    await b.session.prompt(words)
    await b.idle()


def adds(mark: str) -> Callable[[ToolReturned, object], Awaitable[ResultReplaced]]:
    async def run(result: ToolReturned, _: object) -> ResultReplaced:
        return ResultReplaced(content=text(text_of(result.content) + mark))

    return run


async def test_a_hook_that_has_nothing_to_say_lets_the_call_run() -> None:
    tool, table = bash(), HookTable()
    table.add(Hook("gate", gives(GoOn())), at=ToolCalled)
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[tool], hooks=table) as b:
        await go(b)
        assert b.results() == ["output"]
        assert len(tool.calls) == 1


async def test_a_blocked_call_does_not_run_and_the_model_is_told_why() -> None:
    tool, table = bash(), HookTable()
    table.add(Hook("gate", gives(ToolBlocked(reason="需要确认"))), at=ToolCalled)
    model = ScriptedModel([call("bash"), say("ok")])
    async with bench(model, tools=[tool], hooks=table) as b:
        await go(b)
        assert tool.calls == []
        assert words(model.requests[1].messages[-1]) == "需要确认"
        ended = [e for e in b.seen() if isinstance(e, ToolEnded)]
        assert [(e.status, e.duration_ms) for e in ended] == [("blocked", None)]
        assert not any(isinstance(e, ToolRunning) for e in b.seen())


async def test_of_two_hooks_the_second_can_block() -> None:
    tool, table = bash(), HookTable()
    put(
        table,
        ToolCalled,
        Hook("hook_a", gives(GoOn())),
        Hook("hook_b", gives(ToolBlocked(reason="禁止"))),
    )
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[tool], hooks=table) as b:
        await go(b)
        assert tool.calls == []
        assert b.results() == ["禁止"]


async def test_arguments_from_a_hook_are_what_runs_and_what_is_told() -> None:
    tool, table = echo(), HookTable()
    table.add(Hook("a", gives(ArgumentsReplaced(arguments={"text": "new"}))), at=ToolCalled)
    model = ScriptedModel([call("echo", {"text": "old"}), say("ok")])
    async with bench(model, tools=[tool], hooks=table) as b:
        await go(b)
        assert b.results() == ["echo:new"]
        running = [e.input for e in b.seen() if isinstance(e, ToolRunning)]
        assert running == [{"text": "new"}]


async def test_an_automatic_compaction_can_be_cancelled_and_the_session_stays_as_it_is() -> None:
    seen: list[object] = []
    table = HookTable()
    table.add(Hook("keep", gives(CompactionCancelled(), seen=seen)), at=Compacting)
    long = "word " * 7_000
    options = SessionOptions(compaction=CompactionPolicy(keep_recent_tokens=100))
    model = ScriptedModel([say("first"), say(long)], facts=SMALL)
    async with bench(model, hooks=table, options=options) as b:
        await go(b, "one")
        before = b.messages
        await go(b, "two")
        ended = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.aborted, e.summary) for e in ended] == [("threshold", True, None)]
        assert [one.reason for one in seen if isinstance(one, Compacting)] == ["threshold"]
        assert b.messages[: len(before)] == before
        assert words(b.messages[-1]) == long
        assert len(model.requests) == 2
        assert b.session.info.snapshot().state == "idle"


async def test_a_hook_takes_a_secret_out_of_what_the_model_sees() -> None:
    async def redact(result: ToolReturned, _: object) -> ResultReplaced:
        return ResultReplaced(
            content=text(text_of(result.content).replace("API_KEY", "[REDACTED]"))
        )

    table = HookTable()
    table.add(Hook("redact", redact), at=ToolReturned)
    model = ScriptedModel([call("bash"), say("ok")])
    async with bench(model, tools=[bash("the API_KEY is set")], hooks=table) as b:
        await go(b)
        assert words(model.requests[1].messages[-1]) == "the [REDACTED] is set"
        ended = next(e for e in b.seen() if isinstance(e, ToolEnded))
        assert text_of(ended.content) == "the [REDACTED] is set"


async def test_two_hooks_on_a_result_work_one_after_the_other() -> None:
    table = HookTable()
    put(table, ToolReturned, Hook("hook_a", adds("[a]")), Hook("hook_b", adds("[b]")))
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        await go(b)
        assert b.results() == ["output[a][b]"]


async def test_what_a_hook_does_not_name_stays_in_the_result() -> None:
    table = HookTable()
    table.add(Hook("a", gives(ResultReplaced(content=text("changed")))), at=ToolReturned)
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

    async def remind(built: ContextBuilt, _: object) -> ContextReplaced:
        return ContextReplaced(messages=(*built.messages, note))

    table = HookTable()
    table.add(Hook("remind", remind), at=ContextBuilt)
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b)
        assert model.requests[0].messages[-1] == note
        assert note not in b.messages


async def test_a_hook_replaces_what_the_user_typed() -> None:
    table = HookTable()
    table.add(Hook("translate", gives(InputReplaced(content=text("hello")))), at=InputTyped)
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b, "你好")
        assert [words(m) for m in model.requests[0].messages] == ["hello"]


async def test_input_that_a_hook_dealt_with_reaches_no_model() -> None:
    seen: list[object] = []
    table = HookTable()
    put(table, InputTyped, Hook("a", gives(InputHandled())), Hook("b", gives(GoOn(), seen=seen)))
    model = ScriptedModel([say("later")])
    async with bench(model, hooks=table) as b:
        await go(b, "do it yourself")
        assert (seen, model.requests) == ([], [])
        ended = [e.status for e in b.seen() if isinstance(e, RunEnded)]
        assert ended == ["completed"]
        table.remove("a")
        await go(b, "now you")
        assert [words(m) for m in model.requests[0].messages] == ["now you"]


async def test_steering_is_input_too() -> None:
    table = HookTable()

    async def shout(typed: InputTyped, _: object) -> InputReplaced:
        return InputReplaced(content=text(text_of(typed.content).upper()))

    table.add(Hook("shout", shout), at=InputTyped)
    model = ScriptedModel([say("a"), say("b")])
    async with bench(model, hooks=table) as b:
        await b.session.steer("held", if_idle="hold")
        await go(b, "go")
        assert words(model.requests[0].messages[-1]) == "HELD"


async def test_a_message_that_a_hook_adds_is_in_the_context() -> None:
    added = CustomMessage(custom_type="note", content=text("额外上下文"), display=True, at_ms=0)
    table = HookTable()
    prepared = RunPrepared(system="other rules", messages=(added,))
    table.add(Hook("add", gives(prepared)), at=RunPreparing)
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=table) as b:
        await go(b)
        asked = model.requests[0]
        assert [words(m) for m in asked.messages] == ["go", "额外上下文"]
        assert asked.system == "other rules"


async def test_a_hook_that_crashes_is_told_and_the_next_one_still_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = HookTable()
    put(
        table,
        ToolReturned,
        Hook("hook_a", raises(RuntimeError("boom"))),
        Hook("hook_b", adds("[b]")),
    )
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        with caplog.at_level(logging.ERROR):
            await go(b)
        assert b.results() == ["output[b]"]
        told = [e for e in b.seen() if isinstance(e, ExtensionError)]
        assert [(e.extension, e.event, e.error) for e in told] == [
            ("hook_a", "tool_result", "RuntimeError: boom")
        ]
        # The stack is that of the hook's own code.
        assert [line for line in (told[0].stack or "").splitlines() if "File" in line] == [
            line for line in (told[0].stack or "").splitlines() if "hook_functions.py" in line
        ]
        assert "raise error" in (told[0].stack or "")


async def test_the_log_says_where_a_hook_crashed(caplog: pytest.LogCaptureFixture) -> None:
    table = HookTable()
    table.add(Hook("hook_a", raises(RuntimeError("boom"))), at=ToolReturned)
    async with bench(ScriptedModel([call("bash"), say("ok")]), tools=[bash()], hooks=table) as b:
        with caplog.at_level(logging.WARNING):
            await go(b)
    (record,) = [one for one in caplog.records if "hook_a" in one.getMessage()]
    assert record.exc_info is not None
    kind, error, stack = record.exc_info
    assert (kind, str(error)) == (RuntimeError, "boom")
    assert stack is not None
    assert stack.tb_next is not None


async def test_a_hook_that_hangs_is_given_up_and_the_result_stays() -> None:
    """Not through a session: its patience is 5 s."""
    table = HookTable()
    put(table, ToolReturned, Hook("slow", hangs), Hook("good", adds("[b]")))
    hooks, failures = runner(table, limit_s=0.02)
    with anyio.fail_after(5):
        outcome = await hooks.ask(returned("output"))
    assert outcome == ResultReplaced(content=text("output[b]"))
    assert failures == [("slow", "tool_result", "no answer within 0.02 s")]


async def test_a_failed_compaction_hook_leaves_the_compaction_to_the_model() -> None:
    table = HookTable()
    table.add(Hook("bad", raises(RuntimeError("boom"))), at=Compacting)
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
