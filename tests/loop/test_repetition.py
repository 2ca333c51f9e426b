"""A model that goes in circles is stopped; one that works is not."""

from collections.abc import Sequence

import anyio

from agent_core.events import RunEnded
from agent_core.tools import text_result
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import ScriptedModel, Step, both, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import FunctionTool, echo

SAME = call("echo", {"text": "x"})
OTHER = call("echo", {"text": "y"})
REFUSED = "Not run: echo was called 5 times with these arguments"


async def ended(b: Bench) -> RunEnded:
    await b.session.prompt("go")
    (end,) = [event for event in await b.idle() if isinstance(event, RunEnded)]
    return end


def refused(b: Bench) -> int:
    return len([text for text in b.results() if text.startswith(REFUSED)])


async def test_a_call_with_the_same_result_is_refused_and_then_the_run_ends() -> None:
    tool = echo()
    async with bench(ScriptedModel([SAME] * 60), tools=[tool]) as b:
        end = await ended(b)
        assert end.error is not None
        assert (end.status, end.error.kind) == ("failed", "CallsRepeated")
        assert "repeated the same tool calls" in end.error.message
        assert (len(tool.calls), refused(b), len(b.model.requests)) == (5, 3, 8)


async def test_calls_in_turn_are_a_loop_too() -> None:
    async with bench(ScriptedModel([SAME, OTHER] * 30), tools=[echo()]) as b:
        end = await ended(b)
        assert end.error is not None
        assert (end.error.kind, len(b.model.requests)) == ("CallsRepeated", 14)


async def test_a_tool_that_does_not_exist_is_not_asked_for_for_ever() -> None:
    async with bench(ScriptedModel([call("gone", {"a": 1})] * 60), tools=[echo()]) as b:
        end = await ended(b)
        assert end.error is not None
        assert (end.error.kind, len(b.model.requests)) == ("CallsRepeated", 8)


async def test_a_model_that_heeds_the_refusal_goes_on() -> None:
    turns: Sequence[Sequence[Step]] = [*[SAME] * 6, OTHER, *[SAME] * 4, say("done")]
    async with bench(ScriptedModel(turns), tools=[echo()]) as b:
        end = await ended(b)
        assert (end.status, refused(b)) == ("completed", 1)


def ticking(name: str = "echo", *, takes_s: float) -> tuple[FunctionTool, FakeClock]:
    """Make a tool whose result is another each time, and the clock by which it takes its time."""
    clock = FakeClock()

    async def work(arguments: object, context: object):
        await clock.sleep(takes_s)
        return text_result(f"pid {clock.now_ms()}: 1 failed in 0.{clock.now_ms() % 977} s")

    return FunctionTool(name, work), clock


async def test_a_call_that_waits_for_a_result_that_changes_is_no_loop() -> None:
    polled, clock = ticking(takes_s=5)
    async with bench(ScriptedModel([*[SAME] * 40, say("done")]), tools=[polled], clock=clock) as b:
        assert ((await ended(b)).status, len(polled.calls)) == ("completed", 40)


async def test_the_same_calls_in_a_row_are_a_loop_whatever_their_results() -> None:
    tool, clock = ticking(takes_s=0.1)
    other, _ = ticking("other", takes_s=0.1)
    two = both(SAME, call("other", {}))
    async with bench(ScriptedModel([two] * 60), tools=[tool, other], clock=clock) as b:
        end = await ended(b)
        assert end.error is not None
        assert (end.status, end.error.kind) == ("failed", "CallsRepeated")
        assert "more than 15 times in a row" in end.error.message
        assert (len(tool.calls), len(b.model.requests)) == (15, 18)
        assert [text for text in b.results() if "in 15 turns in a row" in text]


async def test_a_model_that_waits_longer_when_it_is_told_to_goes_on() -> None:
    tool, clock = ticking(takes_s=0.1)
    turns: Sequence[Sequence[Step]] = [*[SAME] * 17, OTHER, *[SAME] * 15, say("done")]
    async with bench(ScriptedModel(turns), tools=[tool], clock=clock) as b:
        assert ((await ended(b)).status, len(tool.calls)) == ("completed", 31)


async def test_the_same_check_between_different_steps_is_no_loop() -> None:
    steps = [turn for n in range(20) for turn in (call("echo", {"text": f"{n}"}), SAME)]
    async with bench(ScriptedModel([*steps, say("done")]), tools=[echo()]) as b:
        assert ((await ended(b)).status, refused(b)) == ("completed", 0)


async def test_words_of_the_user_begin_the_count_anew() -> None:
    entered = anyio.Event()
    count = 0

    async def work(arguments: object, context: object):
        nonlocal count
        count += 1
        if count == 4:
            entered.set()
            await released.wait()
        return text_result("same")

    released = anyio.Event()
    model = ScriptedModel([*[SAME] * 8, say("done")])
    async with bench(model, tools=[FunctionTool("echo", work)]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await entered.wait()
        await b.session.steer("once more")
        released.set()
        events = await b.idle()
        assert [e.status for e in events if isinstance(e, RunEnded)] == ["completed"]
        assert (count, refused(b)) == (8, 0)


async def test_work_that_comes_back_to_the_same_files_is_no_loop() -> None:
    day = [call("echo", {"text": f"{n}"}) for n in range(13)]
    async with bench(ScriptedModel([*day * 8, say("done")]), tools=[echo()]) as b:
        assert ((await ended(b)).status, refused(b)) == ("completed", 0)
