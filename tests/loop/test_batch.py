"""A batch of tool calls: one result for each, whatever comes in between."""

import anyio

from agent_core.events import ToolEnded
from agent_core.kernel import JsonObject
from agent_core.messages import Text, ToolResultMessage, text_of
from agent_core.tools import ToolContext, ToolResult, text_result
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool, Hold, echo


async def test_words_that_wait_already_skip_a_whole_parallel_batch() -> None:
    gate = Gate()
    first, second = echo("a", parallel_safe=True), echo("b", parallel_safe=True)
    turn = both((gate,), call("a", id="1"), call("b", id="2"))
    async with bench(ScriptedModel([turn, say("ok")]), tools=[first, second]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.steer("stop")
        gate.release()
        await b.idle()
        assert b.results() == ["Skipped due to queued user message"] * 2
        assert (first.calls, second.calls) == ([], [])


async def test_stopping_one_of_a_parallel_batch_leaves_the_other() -> None:
    one = Hold("one", kind="read", parallel_safe=True)
    two = Hold("two", kind="read", parallel_safe=True)
    turn = both(call("one", id="1"), call("two", id="2"))
    async with bench(ScriptedModel([turn, say("ok")]), tools=[one.tool, two.tool]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await one.entered.wait()
            await two.entered.wait()
        view = b.session.info.snapshot().run
        assert view is not None
        items = [item.item for item in view.items if item.kind == "tool"]
        await b.session.abort(item=items[0])
        two.release.set()
        await b.idle()
        assert (one.cancelled, two.cancelled) == (True, False)
        assert b.results()[1] == "held"
        ended = [e.status for e in b.seen() if isinstance(e, ToolEnded)]
        assert ended == ["cancelled", "ok"]


async def test_an_abort_in_a_parallel_batch_keeps_the_true_result_of_what_was_over() -> None:
    quick, slow = echo("quick", parallel_safe=True), Hold("slow", kind="read", parallel_safe=True)
    turn = both(call("slow", id="1"), call("quick", {"text": "x"}, id="2"))
    async with bench(ScriptedModel([turn]), tools=[quick, slow.tool]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await slow.entered.wait()
            await anyio.wait_all_tasks_blocked()
        await b.session.abort()
        kept = [m for m in b.messages if isinstance(m, ToolResultMessage)]
        assert [(m.call_id, m.is_error) for m in kept] == [("1", True), ("2", False)]
        assert text_of(kept[1].content) == "quick:x"


async def test_two_calls_with_one_id_both_get_their_result() -> None:
    model = ScriptedModel(
        [both(call("echo", {"text": "1"}, id="c"), call("echo", {"text": "2"}, id="c")), say("ok")]
    )
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["echo:1", "echo:2"]


async def test_a_tool_that_says_nothing_has_a_result_all_the_same() -> None:
    async def nothing(*_: object) -> ToolResult:
        return ToolResult(content=())

    model = ScriptedModel([call("mute"), say("ok")])
    async with bench(model, tools=[FunctionTool("mute", nothing)]) as b:
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["(no output)"]


async def test_live_output_after_the_end_of_a_call_is_not_told() -> None:
    kept: list[ToolContext] = []

    async def leak(_: JsonObject, context: ToolContext) -> ToolResult:
        kept.append(context)
        return text_result("done")

    model = ScriptedModel([call("leak"), say("ok")])
    async with bench(model, tools=[FunctionTool("leak", leak)]) as b:
        await b.session.prompt("go")
        await b.idle()
        before = len(b.seen())
        kept[0].output("late")
        assert len(b.seen()) == before


async def test_the_model_reads_the_content_and_front_ends_the_details() -> None:
    async def work(arguments: object, context: object):
        return text_result("for the model", details={"shown": "in the panel"})

    model = ScriptedModel([call("work"), say("done")])
    async with bench(model, tools=[FunctionTool("work", work)]) as b:
        await b.session.prompt("go")
        (ended,) = [event for event in await b.idle() if isinstance(event, ToolEnded)]
    result = model.requests[-1].messages[-1]
    assert isinstance(result, ToolResultMessage)
    assert result.content == ended.content == (Text(text="for the model"),)
    assert result.details == ended.details == {"shown": "in the panel"}
