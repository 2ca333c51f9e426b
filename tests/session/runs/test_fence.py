"""A run that does not stop in time is fenced off: it can say nothing more, and the next one starts."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from typing_extensions import override

from agent_core.events import (
    ErrorRaised,
    Event,
    MessageEnded,
    QueueChanged,
    RunEnded,
    RunStarted,
    SessionConfigured,
    SessionStateChanged,
    ToolEnded,
    ToolRunning,
)
from agent_core.kernel import ItemId, JsonObject, RunId
from agent_core.loop.batch import CANCELLED
from agent_core.messages import Text, ToolResultMessage, UserMessage, text_of
from agent_core.providers import ModelRequest, StreamEvent
from agent_core.tools import ToolContext, ToolResult, text_result
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say
from tests.support.session.sessions import Bench, bench, unmarked, words
from tests.support.workspace.tools import FunctionTool, Hold, echo


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


class StubbornModel(ScriptedModel):
    """A model whose stream goes on although it was cancelled."""

    @asynccontextmanager
    @override
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        async with super().stream(request) as parts:
            got: list[StreamEvent] = []
            with anyio.CancelScope(shield=True):
                got = [part async for part in parts]

            async def replay() -> AsyncGenerator[StreamEvent, None]:
                for part in got:
                    yield part

            yield replay()


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
            case SessionStateChanged() | SessionConfigured() | QueueChanged() | ErrorRaised():
                continue
            case _ if run is None:
                problems.append(f"{type(event).__name__} outside of a run")
            case _:
                continue
    return problems


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


async def test_a_tool_that_does_not_stop_is_fenced_off_and_the_run_ends_once() -> None:
    stubborn, after = Stubborn(), echo("after")
    model = ScriptedModel(
        [both(call("stubborn", id="1"), call("after", id="2")), say("the next run")]
    )
    async with bench(model, tools=[stubborn.tool, after]) as b:
        first = await b.session.prompt("go")
        await entered(stubborn.entered)
        result = await b.session.abort(run=first.run, wait_s=0.02)
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
        await b.session.abort(wait_s=0)
        await b.session.prompt("next")
        await b.idle()
        sent = model.requests[1].messages
        assert [type(one).__name__ for one in sent] == [
            "UserMessage",
            "AssistantMessage",
            "ToolResultMessage",
            "CustomMessage",
            "UserMessage",
        ]
        stubborn.release.set()


async def test_two_cancels_that_lose_patience_at_once_end_the_run_once() -> None:
    stubborn = Stubborn()
    async with bench(ScriptedModel([call("stubborn")]), tools=[stubborn.tool]) as b:
        await b.session.prompt("go")
        await entered(stubborn.entered)

        async def stop() -> None:
            await b.session.abort(wait_s=0)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(stop)
        assert len(ends(b)) == 1
        assert b.results() == [CANCELLED]
        stubborn.release.set()


async def test_an_answer_that_comes_after_the_fence_is_not_kept() -> None:
    gate = Gate()
    model = StubbornModel([(gate, *both("late", call("echo", id="9"))), say("fine")])
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        assert (await b.session.abort(wait_s=0)).timed_out
        gate.release()
        await anyio.wait_all_tasks_blocked()
        assert [type(m) for m in unmarked(b.messages)] == [UserMessage]
        await b.session.prompt("next")
        await b.idle()
        assert [words(m) for m in unmarked(b.messages)] == ["go", "next", "fine"]
        assert len(ends(b)) == 2


async def test_words_that_came_while_a_cancel_waited_stay_paused_behind_the_fence() -> None:
    stubborn = Stubborn()
    model = ScriptedModel([call("stubborn"), say("a"), say("b")])
    async with bench(model, tools=[stubborn.tool]) as b:
        await b.session.prompt("go")
        await entered(stubborn.entered)
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await b.session.abort(wait_s=0.1)

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
        said = [words(m) for m in b.messages if isinstance(m, UserMessage)]
        assert said == ["go", "now", "later"]


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
