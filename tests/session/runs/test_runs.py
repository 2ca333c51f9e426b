"""Runs of a session: what is said, what is kept, in which order, on every path out."""

import itertools
from typing import Any

import anyio
import pytest

from agent_core.events import (
    MessageEnded,
    QueueChanged,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolRunning,
)
from agent_core.kernel import MessageId, RunId
from agent_core.kernel.errors import (
    ModelUnknown,
    RunMismatch,
    RunNotActive,
    SessionBusy,
    SessionClosed,
    UsageError,
)
from agent_core.messages import AssistantMessage, Text, ToolResultMessage, UserMessage, text_of
from agent_core.session.context import SessionOptions
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool, Hold, echo


async def test_a_prompt_is_answered_and_the_events_come_in_order() -> None:
    async with bench(ScriptedModel([say("Hel", "lo")])) as b:
        receipt = await b.session.prompt("Hi")
        assert receipt.accepted == "started"
        await b.idle()
        assert b.names() == [
            "run.started",
            "session.state",
            "run.stage",
            "message.started",
            "message.ended",
            "run.stage",
            "turn.started",
            "message.started",
            "message.delta",
            "session.usage",
            "message.ended",
            "turn.ended",
            "run.stage",
            "run.stage",
            "run.ended",
            "session.state",
        ]
        ranges = [(stamped.first, stamped.seq) for stamped in b.events]
        assert all(one[1] + 1 == two[0] for one, two in itertools.pairwise(ranges))
        assert receipt.seq < b.events[0].seq
        result = await b.session.wait(receipt.run or RunId(""))
        assert result is not None
        assert (result.status, result.text) == ("completed", "Hello")


async def test_a_tool_call_runs_and_its_result_goes_back_to_the_model() -> None:
    model = ScriptedModel([call("echo", {"text": "x"}), say("done")])
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["echo:x"]
        sent = model.requests[1].messages
        assert isinstance(sent[-1], ToolResultMessage)
        assert sent[-1].call_id == "c1"


async def test_many_tools_one_after_another_keep_their_order() -> None:
    tools = [echo("a"), echo("b"), echo("c")]
    model = ScriptedModel(
        [
            both(call("a", {"text": "1"}, id="1"), call("b", {"text": "2"}, id="2")),
            call("c", {"text": "3"}, id="3"),
            say("done"),
        ]
    )
    async with bench(model, tools=tools) as b:
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["a:1", "b:2", "c:3"]


async def test_results_of_a_parallel_batch_stand_in_source_order() -> None:
    first, second = Hold("slow", kind="read", parallel_safe=True), echo("fast", parallel_safe=True)
    model = ScriptedModel([both(call("slow", id="1"), call("fast", id="2")), say("ok")])
    async with bench(model, tools=[first.tool, second]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await first.entered.wait()
        while not second.calls:
            await anyio.lowlevel.checkpoint()
        first.release.set()
        await b.idle()
        ids = [m.call_id for m in b.messages if isinstance(m, ToolResultMessage)]
        assert ids == ["1", "2"]
        ended = [e.call for e in b.seen() if isinstance(e, ToolEnded)]
        assert ended == ["1", "2"]


async def test_sequential_execution_runs_safe_tools_one_after_another() -> None:
    first, second = Hold("slow", kind="read", parallel_safe=True), echo("fast", parallel_safe=True)
    model = ScriptedModel([both(call("slow", id="1"), call("fast", id="2")), say("ok")])
    options = SessionOptions(tool_execution="sequential")
    async with bench(model, tools=[first.tool, second], options=options) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await first.entered.wait()
        await anyio.wait_all_tasks_blocked()
        assert second.calls == []
        first.release.set()
        await b.idle()
        assert b.results() == ["held", "fast:"]


async def test_steering_skips_calls_that_have_not_started() -> None:
    hold, other = Hold(kind="read"), echo("other")
    model = ScriptedModel([both(call("hold", id="1"), call("other", id="2")), say("ok")])
    async with bench(model, tools=[hold.tool, other]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        receipt = await b.session.steer("stop that")
        assert receipt.accepted == "steered"
        hold.release.set()
        await b.idle()
        assert b.results() == ["held", "Skipped due to queued user message"]
        assert other.calls == []
        skipped = [e for e in b.seen() if isinstance(e, ToolEnded)][1]
        assert (skipped.status, skipped.duration_ms) == ("skipped", None)
        assert len([e for e in b.seen() if isinstance(e, ToolRunning)]) == 1
        last = model.requests[1].messages[-1]
        assert isinstance(last, UserMessage)
        assert last.content == (Text(text="stop that"),)


async def test_skipping_can_be_switched_off() -> None:
    hold, other = Hold(kind="read"), echo("other")
    model = ScriptedModel([both(call("hold", id="1"), call("other", id="2")), say("ok")])
    async with bench(
        model, tools=[hold.tool, other], options=SessionOptions(skip_on_steer=False)
    ) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        await b.session.steer("by the way")
        hold.release.set()
        await b.idle()
        assert b.results() == ["held", "other:"]


async def test_steering_interrupts_a_running_process_after_the_grace_and_says_so() -> None:
    hold = Hold("bash", kind="execute")
    model = ScriptedModel([call("bash", id="1"), say("ok")])
    async with bench(model, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        await b.session.steer("enough")
        await b.idle()
        assert hold.cancelled
        assert b.results() == [
            "working\n\nInterrupted: the user sent a new message while this ran."
        ]
        assert b.slept == [2.0]


async def test_a_process_is_not_interrupted_when_the_grace_is_null() -> None:
    hold = Hold("bash", kind="execute")
    model = ScriptedModel([call("bash", id="1"), say("ok")])
    async with bench(model, tools=[hold.tool], options=SessionOptions(steer_grace_s=None)) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        await b.session.steer("enough")
        await anyio.wait_all_tasks_blocked()
        assert not hold.cancelled
        hold.release.set()
        await b.idle()
        assert b.results() == ["held"]


@pytest.mark.parametrize(
    ("mode", "requests"), [("one-at-a-time", 4), ("all", 2)], ids=["one-at-a-time", "all"]
)
async def test_queued_steering_is_taken_by_mode(mode: str, requests: int) -> None:
    hold = Hold(kind="read")
    model = ScriptedModel([call("hold"), say("a"), say("b"), say("c")])
    async with bench(model, tools=[hold.tool], steering=mode) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        await b.session.steer("one")
        await b.session.steer("two")
        if mode == "one-at-a-time":
            await b.session.steer("three")
        hold.release.set()
        await b.idle()
        assert len(model.requests) == requests


async def test_a_follow_up_runs_when_the_run_would_stop_in_the_same_run() -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *say("first")), say("second")])
    async with bench(model) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert (await b.session.follow_up("and then")).accepted == "queued"
        gate.release()
        events = await b.idle()
        assert len([e for e in events if isinstance(e, RunStarted)]) == 1
        assert [type(m) for m in b.messages] == [
            UserMessage,
            AssistantMessage,
            UserMessage,
            AssistantMessage,
        ]


async def test_a_second_prompt_is_refused_without_a_delivery() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("ok"))])) as b:
        await b.session.prompt("go")
        with pytest.raises(SessionBusy, match="is going on"):
            await b.session.prompt("again")
        with pytest.raises(SessionBusy):
            await b.session.prompt("again", delivery="reject")
        gate.release()
        await b.idle()
        assert len([m for m in b.messages if isinstance(m, UserMessage)]) == 1


async def test_two_prompts_at_once_start_one_run() -> None:
    outcomes: list[str] = []
    async with bench(ScriptedModel([say("a"), say("b")])) as b:

        async def go() -> None:
            try:
                outcomes.append((await b.session.prompt("go")).accepted)
            except SessionBusy:
                outcomes.append("busy")

        async with anyio.create_task_group() as group:
            group.start_soon(go)
            group.start_soon(go)
        await b.idle()
        assert sorted(outcomes) == ["busy", "started"]


async def test_the_same_message_id_is_recognised() -> None:
    async with bench(ScriptedModel([say("a")])) as b:
        first = await b.session.prompt("go", message_id=MessageId("m1"))
        again = await b.session.prompt("go", message_id=MessageId("m1"))
        assert (again.accepted, again.run) == ("duplicate", first.run)
        await b.idle()


async def test_steering_an_idle_session_starts_holds_or_is_refused() -> None:
    async with bench(ScriptedModel([say("a"), say("b"), say("c")])) as b:
        with pytest.raises(RunNotActive):
            await b.session.steer("x", if_idle="reject")
        held = await b.session.steer("x", if_idle="hold")
        assert held.accepted == "held"
        assert [item.delivery for item in b.session.info.snapshot().queue] == ["steer"]
        assert (await b.session.steer("y")).accepted == "started"
        await b.idle()
        said = [m.content[0] for m in b.messages if isinstance(m, UserMessage)]
        assert said == [Text(text="y"), Text(text="x")]


async def test_an_expected_run_that_is_not_there_is_a_mismatch() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(RunMismatch, match="'r-9' was expected"):
            await b.session.prompt("x", expected_run=RunId("r-9"))


async def test_an_empty_prompt_is_refused() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(UsageError, match="empty"):
            await b.session.prompt("  \n")
        assert b.messages == ()


async def test_a_session_without_a_model_refuses_and_says_what_to_do() -> None:
    async with bench(ScriptedModel(), usable=False) as b:
        with pytest.raises(ModelUnknown, match="ANTHROPIC_API_KEY"):
            await b.session.prompt("hi")
        assert b.messages == ()


async def test_a_closed_session_refuses() -> None:
    async with bench(ScriptedModel()) as b:
        await b.session.close()
        with pytest.raises(SessionClosed):
            await b.session.prompt("hi")


async def test_calls_of_an_answer_cut_off_by_the_limit_are_answered_and_never_run() -> None:
    tool = echo()
    model = ScriptedModel([call("echo", {"text": "x"}, stop_reason="length"), say("ok")])
    async with bench(model, tools=[tool]) as b:
        await b.session.prompt("go")
        await b.idle()
        assert tool.calls == []
        assert "cut off by the output token limit" in b.results()[0]


async def test_a_tool_that_crashes_is_a_result_and_the_run_goes_on() -> None:
    async def boom(*_: object) -> Any:
        raise FileNotFoundError("gone between stat and read")

    model = ScriptedModel([call("boom"), say("ok")])
    async with bench(model, tools=[FunctionTool("boom", boom)]) as b:
        await b.session.prompt("go")
        await b.idle()
        assert "FileNotFoundError" in b.results()[0]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"]


async def test_the_ended_event_of_a_message_carries_the_whole() -> None:
    async with bench(ScriptedModel([say("a", "b", "c")])) as b:
        await b.session.prompt("go")
        events = await b.idle()
        whole = [e.content for e in events if isinstance(e, MessageEnded) and e.role == "assistant"]
        assert whole == [(Text(text="abc"),)]


async def test_words_leave_the_queue_when_they_are_said_and_every_change_tells_all_of_it() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b"), say("c")])) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.steer("inside")
        await b.session.follow_up("after")
        gate.release()
        events = await b.idle()
        told: list[list[str] | str] = []
        for event in events:
            if isinstance(event, QueueChanged):
                told.append([text_of(item.content) for item in event.queue])
            elif isinstance(event, MessageEnded) and event.role == "user":
                told.append(text_of(event.content))
        assert told == [
            "go",
            ["inside"],
            ["inside", "after"],
            "inside",
            ["after"],
            "after",
            [],
        ]
