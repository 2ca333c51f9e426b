"""A run that reaches its limit of answers gives a last one without tools; safe calls run a few at a time."""

import anyio
import pytest

from agent_core.events import Notice, RunEnded
from agent_core.session.context import SessionOptions
from agent_core.tools import text_result
from tests.support.session.scripted_model import ScriptedModel, both, call, say
from tests.support.session.sessions import Bench, bench, words
from tests.support.workspace.tools import FunctionTool, echo


def calling(turns: int) -> list:
    return [call("echo", {"text": f"{at}"}, id=f"c{at}") for at in range(turns)]


def limited(turns: int) -> SessionOptions:
    return SessionOptions(max_turns=turns)


async def ended(it: Bench) -> tuple[RunEnded, list[str]]:
    events = await it.idle()
    end = [event for event in events if isinstance(event, RunEnded)][-1]
    return end, [event.text for event in events if isinstance(event, Notice)]


async def test_at_its_limit_a_run_gives_a_last_answer_and_ends_as_a_budget_does():
    model = ScriptedModel([*calling(3), say("Half is done. Next: the other half.")])
    async with bench(model, tools=(echo(),), options=limited(3)) as it:
        _ = await it.session.prompt("Work.")
        end, notices = await ended(it)
        assert (end.status, end.turns) == ("budget", 4)
        assert end.error is not None
        assert (
            "the run ended at its limit of 3 answers (maxTurns); say «go on»" in end.error.message
        )
        assert it.results() == ["echo:0", "echo:1", "echo:2"]
        last = model.requests[-1]
        assert "reached its limit of 3 answers" in words(last.messages[-1])
        # The declarations stay: providers want them where the history has calls, and their cache is kept.
        assert last.tools == model.requests[0].tools
        (told,) = [one for one in notices if "maxTurns" in one]
        assert told.startswith("The run has reached its limit of 3 answers (maxTurns).")


async def test_a_model_that_goes_on_calling_gets_refusals_and_no_further_request():
    model = ScriptedModel(calling(9))
    async with bench(model, tools=(echo(),), options=limited(2)) as it:
        _ = await it.session.prompt("Work.")
        end, _ = await ended(it)
        assert end.status == "budget"
        assert len(model.requests) == 3
        assert it.results()[:2] == ["echo:0", "echo:1"]
        assert it.results()[2].startswith("Not run: the run is at its limit of answers")


async def test_the_next_run_has_the_whole_limit_again():
    model = ScriptedModel([*calling(2), say("Half."), *calling(1), say("All.")])
    async with bench(model, tools=(echo(),), options=limited(2)) as it:
        _ = await it.session.prompt("Work.")
        assert (await ended(it))[0].status == "budget"
        _ = await it.session.prompt("Go on.")
        assert (await ended(it))[0].status == "completed"


@pytest.mark.parametrize("turns", [3, None])
async def test_a_run_that_is_done_at_its_limit_is_completed(turns: int | None):
    model = ScriptedModel([*calling(2), say("Done.")])
    async with bench(model, tools=(echo(),), options=SessionOptions(max_turns=turns)) as it:
        _ = await it.session.prompt("Work.")
        end, notices = await ended(it)
        assert end.status == "completed"
        assert not [one for one in notices if "maxTurns" in one]


async def test_what_waits_behind_a_run_at_its_limit_is_kept_in_the_queue():
    model = ScriptedModel([*calling(2), say("Half.")])
    async with bench(model, tools=(echo(),), options=limited(1)) as it:
        _ = await it.session.prompt("Work.")
        _ = await it.session.follow_up("And then this.")
        end, _ = await ended(it)
        assert end.status == "budget"
        assert len(it.session.queue.items) == 1


async def test_at_most_tool_concurrency_safe_calls_run_at_once():
    running, most = 0, 0

    async def work(arguments, context):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        running -= 1
        return text_result(arguments["text"])

    tool = FunctionTool("echo", work, parallel_safe=True)
    calls = both(*(call("echo", {"text": f"{at}"}, id=f"c{at}") for at in range(20)))
    async with bench(
        ScriptedModel([calls, say("Done.")]),
        tools=(tool,),
        options=SessionOptions(tool_concurrency=3),
    ) as it:
        _ = await it.session.prompt("Work.")
        assert (await ended(it))[0].status == "completed"
        assert it.results() == [f"{at}" for at in range(20)]
    assert most == 3


async def test_calls_that_wait_for_the_limiter_are_skipped_after_a_steering_message():
    started = anyio.Event()
    goes_on = anyio.Event()

    async def work(arguments, context):
        started.set()
        await goes_on.wait()
        return text_result(arguments["text"])

    tool = FunctionTool("echo", work, parallel_safe=True)
    calls = both(*(call("echo", {"text": f"{at}"}, id=f"c{at}") for at in range(3)))
    async with bench(
        ScriptedModel([calls, say("Done.")]),
        tools=(tool,),
        options=SessionOptions(tool_concurrency=1),
    ) as it:
        _ = await it.session.prompt("Work.")
        await started.wait()
        _ = await it.session.steer("Something else.")
        goes_on.set()
        assert (await ended(it))[0].status == "completed"
        skipped = "Skipped due to queued user message"
        assert it.results() == ["0", skipped, skipped]
    assert len(tool.calls) == 1
