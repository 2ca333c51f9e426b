"""Stopping a session's work: what ends, what is kept, what is said."""

from typing import Any

import anyio
import pytest

from agent_core.events import (
    QueueChanged,
    RunEnded,
    ToolRunning,
)
from agent_core.kernel.errors import (
    ProviderError,
)
from agent_core.messages import AssistantMessage, Text, UserMessage
from agent_core.session.history.entries import INTERRUPTED_BY_USER
from agent_core.session.runs.cancel import QueueFate
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import bench, words
from tests.support.workspace.tools import Hold


def server_error(**more: Any) -> ProviderError:
    return ProviderError("the provider is down", reason="server", provider="scripted", **more)


async def test_abort_ends_the_run_and_says_so() -> None:
    hold = Hold()
    async with bench(ScriptedModel([call("hold")]), tools=[hold.tool]) as b:
        receipt = await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
        result = await b.session.abort(run=receipt.run)
        assert result.status == "cancelled"
        assert hold.cancelled
        events = b.seen()
        ended = [e for e in events if isinstance(e, RunEnded)]
        assert [e.status for e in ended] == ["cancelled"]
        assert b.results() == ["working\n\nCommand aborted"]
        assert (await b.session.abort(run=receipt.run)).status == "alreadyEnded"


async def test_abort_keeps_a_partial_answer_that_says_something() -> None:
    gate = Gate()
    model = ScriptedModel([(*say("half an ans")[:-1], gate, *say("rest"))])
    async with bench(model) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.abort()
        last = b.messages[-2]
        assert isinstance(last, AssistantMessage)
        assert (last.text, last.stop_reason) == ("half an ans", "aborted")
        assert model.open_streams == 0


async def test_abort_drops_an_answer_that_says_nothing() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("x"))])) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.abort()
        assert [words(m) for m in b.messages] == ["go", INTERRUPTED_BY_USER]


async def test_a_late_cancel_never_hits_the_next_run() -> None:
    gate = Gate()
    async with bench(ScriptedModel([say("a"), (gate, *say("b"))])) as b:
        first = await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert (await b.session.abort(run=first.run)).status == "alreadyEnded"
        gate.release()
        await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed", "completed"]


async def test_after_an_abort_the_queue_stays_paused_until_the_next_prompt() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b"), say("c")])) as b:
        await b.session.prompt("one")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.follow_up("later")
        await b.session.abort()
        changed = [e for e in b.seen() if isinstance(e, QueueChanged)][-1]
        assert changed.paused
        await anyio.wait_all_tasks_blocked()
        assert b.session.info.snapshot().state == "idle"
        await b.session.prompt("two")
        await b.idle()
        said = [m.content[0] for m in b.messages if isinstance(m, UserMessage)]
        assert said == [Text(text="one"), Text(text="two"), Text(text="later")]


@pytest.mark.parametrize("fate", ["return", "drop"])
async def test_an_abort_can_give_the_queue_back_or_drop_it(fate: QueueFate) -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a"))])) as b:
        await b.session.prompt("one")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.follow_up("later")
        result = await b.session.abort(queue=fate)
        returned = [item.content for item in result.returned]
        assert returned == ([(Text(text="later"),)] if fate == "return" else [])
        assert b.session.info.snapshot().queue == ()


async def test_one_tool_call_can_be_stopped_alone() -> None:
    hold = Hold()
    model = ScriptedModel([call("hold"), say("ok")])
    async with bench(model, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        running = await b.until(ToolRunning)
        assert isinstance(running, ToolRunning)
        with anyio.fail_after(5):
            await hold.entered.wait()
        result = await b.session.abort(item=running.item)
        assert result.status == "cancelled"
        await b.idle()
        assert "stopped" in b.results()[0]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"]


async def test_the_abort_of_a_retry_wait_ends_the_run() -> None:
    class NeverClock:
        def __init__(self) -> None:
            self.waiting = anyio.Event()

        def now_ms(self) -> int:
            return 1_795_000_000_000

        def monotonic_s(self) -> float:
            return 0.0

        async def sleep(self, seconds: float) -> None:
            del seconds
            self.waiting.set()
            await anyio.sleep_forever()

    clock = NeverClock()
    async with bench(ScriptedModel([server_error()]), clock=clock) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await clock.waiting.wait()
        assert b.session.info.snapshot().state == "retrying"
        await b.session.abort()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["cancelled"]


async def test_leaving_the_session_cancels_what_goes_on_and_tells_the_end() -> None:
    hold = Hold()
    async with bench(ScriptedModel([call("hold")]), tools=[hold.tool]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await hold.entered.wait()
    assert hold.cancelled
    assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["cancelled"]
