"""The face of a session beyond its runs: views and switches, and the fence around a tool that does not stop."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_core.events import (
    ErrorRaised,
    Event,
    MessageEnded,
    ModelChanged,
    QueueChanged,
    RunEnded,
    RunStarted,
    SessionConfig,
    SessionConfigured,
    SessionState,
    ToolEnded,
    ToolRunning,
)
from agent_core.kernel import ItemId, JsonObject, RunId
from agent_core.kernel.errors import (
    ModelUnknown,
    QueueFull,
    RunMismatch,
    SessionClosed,
    ToolSetInvalid,
)
from agent_core.loop.batch import CANCELLED
from agent_core.messages import Image, Text, ToolResultMessage, UserMessage, text_of
from agent_core.providers import ModelFacts, ModelRequest, Part
from agent_core.session.inbox import QUEUE_LIMIT
from agent_core.session.restore import restore
from agent_core.tools import ToolContext, ToolResult, text_result
from agent_core.transcript.entries import ModelChange, ThinkingChange
from tests.support.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, both, call, say
from tests.support.sessions import Bench, OneModel, bench
from tests.support.tools import FunctionTool, Hold, echo

OTHER = ModelFacts(
    provider="scripted",
    id="model-2",
    api="embedded",
    name="Other",
    context_window=64_000,
    max_tokens=1_000,
)


class Stubborn:
    """A tool that cancellation does not end; it leaves when the test lets it go."""

    def __init__(self) -> None:
        self.entered = anyio.Event()
        self.release = anyio.Event()
        self.left = anyio.Event()
        self.tool = FunctionTool("stubborn", self._work)

    async def _work(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.entered.set()
        with anyio.CancelScope(shield=True):
            await self.release.wait()
            context.output("late words")
        self.left.set()
        return text_result("late result")


async def entered(event: anyio.Event) -> None:
    with anyio.fail_after(5):
        await event.wait()


def ends(b: Bench) -> list[RunEnded]:
    return [one for one in b.seen() if isinstance(one, RunEnded)]


# Switches and views.


async def test_the_expected_run_is_steered_and_no_other() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")])) as b:
        receipt = await b.session.prompt("go")
        await entered(gate.reached)
        steered = await b.session.steer("more", expected_run=receipt.run)
        assert (steered.accepted, steered.run) == ("steered", receipt.run)
        with pytest.raises(RunMismatch, match="'r-9' was expected"):
            await b.session.steer("less", expected_run=RunId("r-9"))
        gate.release()
        await b.idle()
        said = [text_of(m.content) for m in b.messages if isinstance(m, UserMessage)]
        assert said == ["go", "more"]


async def test_switches_are_told_with_all_that_is_in_force() -> None:
    async with bench(ScriptedModel()) as b:
        wanted = SessionConfig(
            model="scripted/model-1",
            thinking="medium",
            mode="plan",
            auto_compact=False,
            steering="all",
            follow_up="all",
            tools=("unused",),
        )
        given = b.session.info.configure(
            mode="plan", auto_compact=False, steering="all", follow_up="all"
        )
        assert given == wanted == b.session.info.config == b.session.info.snapshot().config
        assert b.seen() == [SessionConfigured(config=wanted)]
        assert b.session.info.configure() == wanted


async def test_another_model_counts_from_the_next_request_and_is_in_the_file() -> None:
    first, second = ScriptedModel([say("one")]), ScriptedModel([say("two")], facts=OTHER)
    async with bench(first, source=OneModel(first, second)) as b:
        await b.session.prompt("go")
        await b.idle()
        assert await b.session.models.choose("scripted/model-2") == OTHER
        assert b.session.models.current == OTHER
        await b.session.prompt("go on")
        await b.idle()
        assert (len(first.requests), len(second.requests)) == (1, 1)
        changed = [one for one in b.seen() if isinstance(one, ModelChanged)]
        assert changed == [ModelChanged(model="scripted/model-2", thinking="medium", source="set")]
        kept = [one for one in b.session.info.entries if isinstance(one, ModelChange)]
        assert [(one.provider, one.model) for one in kept] == [("scripted", "model-2")]
        assert b.session.info.snapshot().usage.context_size == 64_000


async def test_an_unknown_model_is_refused_and_the_choice_stays() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(ModelUnknown, match="no model 'scripted/nope'"):
            await b.session.models.choose("scripted/nope")
        assert b.session.models.current == SCRIPTED_FACTS
        assert b.seen() == []


async def test_the_thinking_level_counts_from_the_next_request_and_is_kept_once() -> None:
    model = ScriptedModel([say("a")])
    async with bench(model) as b:
        await b.session.models.think("high")
        await b.session.models.think("high")
        await b.session.prompt("go")
        await b.idle()
        assert model.requests[0].thinking == "high"
        kept = [one.level for one in b.session.info.entries if isinstance(one, ThinkingChange)]
        assert kept == ["high"]


async def test_without_a_model_there_is_none_to_show() -> None:
    async with bench(ScriptedModel(), usable=False) as b:
        assert b.session.models.current is None
        assert b.session.info.config.model is None
        with pytest.raises(ModelUnknown):
            await b.session.compact()


async def test_tools_can_be_chosen_and_added_between_requests() -> None:
    one, two, three = echo("one"), echo("two"), echo("three")
    model = ScriptedModel([say("a"), call("three", {"text": "x"}), say("b")])
    async with bench(model, tools=[one, two]) as b:
        tools = b.session.tools
        tools.activate(["-one"])
        assert (tools.active, tools.all) == (("two",), ("one", "two"))
        await b.session.prompt("go")
        await b.idle()
        tools.register(three)
        assert tools.active == ("two", "three")
        await b.session.prompt("go on")
        await b.idle()
        offered = [[tool.name for tool in request.tools] for request in model.requests]
        assert offered == [["two"], ["two", "three"], ["two", "three"]]
        assert b.results() == ["three:x"]
        configured = [e.config.tools for e in b.seen() if isinstance(e, SessionConfigured)]
        assert configured == [("two",), ("two", "three")]


async def test_a_set_of_tools_that_cannot_be_leaves_the_old_one() -> None:
    async with bench(ScriptedModel(), tools=[echo("one"), echo("two")]) as b:
        for wrong in ("", "nope", ["-one", "-two"]):
            with pytest.raises(ToolSetInvalid):
                b.session.tools.activate(wrong)
        with pytest.raises(ToolSetInvalid, match="'one' exists already"):
            b.session.tools.register(echo("one"))
        assert b.session.tools.active == ("one", "two")
        assert b.seen() == []


async def test_a_tool_that_the_model_must_not_see_cannot_be_called() -> None:
    hidden = echo("hidden")
    model = ScriptedModel([call("hidden"), say("ok")])
    async with bench(model, tools=[echo("shown"), hidden]) as b:
        b.session.tools.activate("shown")
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["Tool hidden not found. There are: shown."]
        assert hidden.calls == []


async def test_a_picture_alone_is_a_prompt() -> None:
    model = ScriptedModel([say("a cat")])
    picture = Image(mime="image/png", data="AA==")
    async with bench(model) as b:
        await b.session.prompt([picture])
        await b.idle()
        assert model.requests[0].messages[0].content == (picture,)


async def test_the_queue_is_bounded_and_what_did_not_fit_is_not_kept() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a"))])) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        for number in range(QUEUE_LIMIT):
            await b.session.follow_up(str(number))
        with pytest.raises(QueueFull, match="wait already"):
            await b.session.follow_up("one too many")
        assert len(restore(b.session.info.entries).waiting) == QUEUE_LIMIT
        await b.session.abort(queue="drop")
        assert restore(b.session.info.entries).waiting == []


async def test_the_results_of_runs_can_be_asked_for_later_and_unknown_runs_have_none() -> None:
    async with bench(ScriptedModel([say("a"), say("b")])) as b:
        first = await b.session.prompt("one")
        assert first.run is not None
        assert b.session.info.is_running(first.run)
        await b.idle()
        await b.session.prompt("two")
        last = await b.session.wait_idle()
        assert last is not None
        assert last.text == "b"
        result = await b.session.wait(first.run)
        assert result is not None
        assert (result.text, b.session.info.is_running(first.run)) == ("a", False)
        assert await b.session.wait(RunId("never")) is None


async def test_a_failed_run_leaves_waiting_words_paused_and_says_so() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, RuntimeError("a bug"))])) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        await b.session.follow_up("later")
        gate.release()
        await b.idle()
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "Internal")
        assert "RuntimeError" in ended.error.message
        assert [e.paused for e in b.seen() if isinstance(e, QueueChanged)] == [False, True]
        assert b.session.info.snapshot().paused


async def test_closing_is_once_and_a_closed_session_has_no_more_events() -> None:
    async with bench(ScriptedModel([say("a")])) as b:
        await b.session.close()
        await b.session.close()
        assert await b.reader.take() == ()
        with pytest.raises(SessionClosed, match="is closed; open it again"):
            await b.session.compact()


async def test_nothing_running_cannot_be_stopped() -> None:
    async with bench(ScriptedModel([say("a")])) as b:
        assert (await b.session.abort()).status == "alreadyEnded"
        assert (await b.session.abort(item=ItemId("i"))).status == "alreadyEnded"


async def test_a_cancelled_run_takes_no_more_words_out_of_the_queue() -> None:
    hold = Stubborn()
    model = ScriptedModel([call("stubborn"), say("next")])
    async with bench(model, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await entered(hold.entered)
        await b.session.steer("wait for me")
        async with anyio.create_task_group() as group:
            group.start_soon(b.session.abort)
            await anyio.wait_all_tasks_blocked()
            hold.release.set()
        assert [item.content for item in b.session.info.snapshot().queue] == [
            (Text(text="wait for me"),)
        ]
        assert [e.status for e in ends(b)] == ["cancelled"]


# The fence.


async def test_a_tool_that_does_not_stop_is_fenced_off_and_the_run_ends_once() -> None:
    stubborn, after = Stubborn(), echo("after")
    model = ScriptedModel(
        [both(call("stubborn", id="1"), call("after", id="2")), say("the next run")]
    )
    async with bench(model, tools=[stubborn.tool, after]) as b:
        first = await b.session.prompt("go")
        await entered(stubborn.entered)
        result = await b.session.abort(run=first.run, grace_s=0.02)
        assert (result.status, result.run, result.timed_out) == ("cancelled", first.run, True)
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.run, ended.status, ended.error.kind) == (
            first.run,
            "cancelled",
            "CancelTimeout",
        )
        assert result.seq == b.session.info.snapshot().seq
        outcome = await b.session.wait(first.run or RunId(""))
        assert outcome is not None
        assert (outcome.status, outcome.error) == ("cancelled", ended.error)

        second = await b.session.prompt("next")
        assert second.accepted == "started"
        await b.idle()
        before = len(b.seen())
        stubborn.release.set()
        await entered(stubborn.left)
        await anyio.wait_all_tasks_blocked()
        assert b.seen()[before:] == []
        assert [(e.run, e.status) for e in ends(b)] == [
            (first.run, "cancelled"),
            (second.run, "completed"),
        ]
        assert b.session.info.snapshot().state == "idle"
        results = [m for m in b.messages if isinstance(m, ToolResultMessage)]
        assert [(m.call_id, text_of(m.content)) for m in results] == [
            ("1", CANCELLED),
            ("2", CANCELLED),
        ]
        assert after.calls == []


async def test_every_started_call_of_a_fenced_run_is_answered_in_the_transcript_of_the_next() -> (
    None
):
    stubborn = Stubborn()
    model = ScriptedModel([call("stubborn", id="1"), say("ok")])
    async with bench(model, tools=[stubborn.tool]) as b:
        await b.session.prompt("go")
        await entered(stubborn.entered)
        await b.session.abort(grace_s=0)
        await b.session.prompt("next")
        await b.idle()
        sent = model.requests[1].messages
        assert [type(one).__name__ for one in sent] == [
            "UserMessage",
            "AssistantMessage",
            "ToolResultMessage",
            "UserMessage",
        ]
        stubborn.release.set()


async def test_two_cancels_that_lose_patience_at_once_end_the_run_once() -> None:
    stubborn = Stubborn()
    async with bench(ScriptedModel([call("stubborn")]), tools=[stubborn.tool]) as b:
        await b.session.prompt("go")
        await entered(stubborn.entered)

        async def stop() -> None:
            await b.session.abort(grace_s=0)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(stop)
        assert len(ends(b)) == 1
        assert b.results() == [CANCELLED]
        stubborn.release.set()


class StubbornModel(ScriptedModel):
    """A model whose stream goes on although it was cancelled."""

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Part]]:
        async with super().stream(request) as parts:
            with anyio.CancelScope(shield=True):
                got = [part async for part in parts]

            async def replay() -> AsyncIterator[Part]:
                for part in got:
                    yield part

            yield replay()


async def test_an_answer_that_comes_after_the_fence_is_not_kept() -> None:
    gate = Gate()
    model = StubbornModel([(gate, *both("late", call("echo", id="9"))), say("fine")])
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        assert (await b.session.abort(grace_s=0)).timed_out
        gate.release()
        await anyio.wait_all_tasks_blocked()
        assert [type(m) for m in b.messages] == [UserMessage]
        await b.session.prompt("next")
        await b.idle()
        assert [text_of(m.content) for m in b.messages] == ["go", "next", "fine"]
        assert len(ends(b)) == 2


async def test_words_that_came_while_a_cancel_waited_stay_paused_behind_the_fence() -> None:
    stubborn = Stubborn()
    model = ScriptedModel([call("stubborn"), say("a"), say("b")])
    async with bench(model, tools=[stubborn.tool]) as b:
        await b.session.prompt("go")
        await entered(stubborn.entered)
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await b.session.abort(grace_s=0.1)

            group.start_soon(stop)
            await anyio.wait_all_tasks_blocked()
            await b.session.follow_up("later")
        assert b.session.info.snapshot().paused
        stubborn.release.set()
        await entered(stubborn.left)
        await anyio.wait_all_tasks_blocked()
        assert len([e for e in b.seen() if isinstance(e, RunStarted)]) == 1
        await b.session.prompt("now")
        await b.idle()
        said = [text_of(m.content) for m in b.messages if isinstance(m, UserMessage)]
        assert said == ["go", "now", "later"]


# What is said is well formed, whatever ended the run.


def order_problems(events: Sequence[Event]) -> list[str]:
    """Find what breaks the order of a run: nothing outside of it, every call ended once."""
    problems: list[str] = []
    run: RunId | None = None
    started: set[ItemId] = set()
    for event in events:
        match event:
            case RunStarted():
                problems += [f"{event.run} begins inside {run}"] if run else []
                run = event.run
            case RunEnded():
                problems += [f"{event.run} ends outside of itself"] if run != event.run else []
                problems += [f"{item} never ended" for item in started]
                run, started = None, set()
            case ToolRunning():
                started.add(event.item)
            case ToolEnded():
                started.discard(event.item)
            case SessionState() | SessionConfigured() | QueueChanged() | ErrorRaised():
                continue
            case _ if run is None:
                problems.append(f"{type(event).__name__} outside of a run")
            case _:
                continue
    return problems


@pytest.mark.parametrize("ending", ["done", "aborted", "failed", "closed"])
async def test_nothing_of_a_run_is_told_before_its_start_or_after_its_end(ending: str) -> None:
    hold, gate = Hold(kind="read"), Gate()
    last = (gate, RuntimeError("x")) if ending == "failed" else (gate, *say("end"))
    model = ScriptedModel([both("I look", call("hold", id="1")), last])
    async with bench(model, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await entered(hold.entered)
        if ending == "closed":
            await b.session.close()
        else:
            hold.release.set()
            await entered(gate.reached)
            if ending == "aborted":
                await b.session.abort()
            gate.release()
            await b.idle()
        assert order_problems(b.seen()) == []
        assert len(ends(b)) == 1
        whole = [e for e in b.seen() if isinstance(e, MessageEnded) and e.role == "assistant"]
        assert text_of(whole[0].content) == "I look"
