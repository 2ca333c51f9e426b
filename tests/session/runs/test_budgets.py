"""A run ends when it has used up what it was given: money, tokens, turns, minutes."""

from dataclasses import replace

import anyio
import pytest

from agent_core.events import Budgets, Failure, RetryEnded, RetryStarted, RunEnded
from agent_core.kernel import RunId
from agent_core.kernel.errors import BudgetRefused, PriceUnknown, ProviderError
from agent_core.messages import Cost, Usage
from agent_core.providers import UsageUpdate
from agent_core.providers.model import Prices
from agent_core.session.runs.usage import (
    RunUsage,
    exhausted_budget,
    loosened,
    tightened,
    unpriced,
)
from agent_core.tools import text_result
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import FunctionTool, echo

PRICED = replace(SCRIPTED_FACTS, prices=Prices(input=1.0, output=2.0))


def used(*, total: int = 100, usd: float | None = 0.5, answers: int = 1, seconds: float = 60.0):
    cost = None if usd is None else Cost(input=usd)
    return RunUsage(tokens=Usage(input=total, cost=cost), answers=answers, seconds=seconds)


@pytest.mark.parametrize(
    ("budgets", "so_far", "said"),
    [
        pytest.param(Budgets(), used(total=10**9, answers=10**6), None, id="no limit"),
        pytest.param(Budgets(usd=0.51), used(), None, id="money left"),
        pytest.param(Budgets(usd=0.5), used(), "0.5 of 0.5 US dollars (budgets.usd)", id="money"),
        pytest.param(Budgets(tokens=101), used(), None, id="tokens left"),
        pytest.param(Budgets(tokens=100), used(), "100 of 100 tokens", id="tokens"),
        pytest.param(Budgets(turns=2), used(), None, id="turns left"),
        pytest.param(Budgets(turns=1), used(), "1 of 1 turns (budgets.turns)", id="turns"),
        pytest.param(Budgets(minutes=1.5), used(), None, id="minutes left"),
        pytest.param(Budgets(minutes=1), used(), "1 of 1 minutes (budgets.minutes)", id="minutes"),
        pytest.param(Budgets(usd=9), used(usd=None), "is not known", id="unknown cost"),
        pytest.param(Budgets(usd=9), used(total=0, usd=None), None, id="nothing spent"),
        pytest.param(
            Budgets(turns=0), used(answers=0, total=0), "0 of 0 turns", id="nothing given"
        ),
    ],
)
def test_a_budget_is_reached_when_as_much_is_used(budgets, so_far, said):
    why = exhausted_budget(budgets, so_far)
    assert why is None if said is None else why is not None and said in why


def test_of_two_budgets_the_stricter_holds():
    most = Budgets(usd=2.0, tokens=100)
    assert tightened(most, Budgets(usd=3.0, tokens=50, turns=4)) == Budgets(
        usd=2.0, tokens=50, turns=4
    )
    assert tightened(most, Budgets()) == most


def test_a_wider_budget_is_named():
    most = Budgets(usd=2.0, minutes=5)
    assert loosened(most, Budgets(usd=3.0, turns=10**6, minutes=5)) == ("usd",)
    assert loosened(most, Budgets()) == ()


def test_without_a_price_only_a_budget_of_money_is_a_question():
    assert unpriced(Budgets(tokens=5), SCRIPTED_FACTS) is None
    assert unpriced(Budgets(usd=5), PRICED) is None
    assert "scripted/model-1 is not known" in (unpriced(Budgets(usd=5), SCRIPTED_FACTS) or "")


def busy(*, turns: int, usage: Usage | None = None, priced: bool = True) -> ScriptedModel:
    """Make a model that calls a tool in each turn, and then has done its work."""
    calling = [call("echo", {"text": f"{at}"}, id=f"c{at}", usage=usage) for at in range(turns)]
    return ScriptedModel(
        [*calling, say("done", usage=usage)], facts=PRICED if priced else SCRIPTED_FACTS
    )


async def ended(it: Bench) -> RunEnded:
    (event,) = [event for event in await it.idle() if isinstance(event, RunEnded)]
    return event


def problem(event: RunEnded) -> Failure:
    assert event.error is not None
    return event.error


async def outcome(it: Bench, run: RunId | None) -> str:
    assert run is not None
    result = await it.session.wait(run)
    assert result is not None
    return result.status


CENT = Usage(input=600, output=400, cost=Cost(input=0.006, output=0.004))


@pytest.mark.parametrize(
    ("budgets", "turns_taken"),
    [
        ({"turns": 2}, 2),
        ({"usd": 0.03}, 3),
        ({"tokens": 1_500}, 2),
        ({"turns": 1, "usd": 1.0}, 1),
    ],
    ids=["turns", "usd", "tokens", "the first of two"],
)
async def test_a_run_ends_at_its_budget_and_every_call_has_its_result(budgets, turns_taken):
    async with bench(
        busy(turns=9, usage=CENT), tools=(echo("echo"),), budgets=Budgets(**budgets)
    ) as it:
        await it.session.prompt("Work.")
        event = await ended(it)
        assert (event.status, problem(event).kind) == ("budget", "BudgetExceeded")
        assert "the run ended at its budget" in problem(event).message
        assert len(it.model.requests) == turns_taken
        assert len(it.results()) == turns_taken


async def test_minutes_are_looked_at_between_two_turns():
    clock = FakeClock()

    async def work(arguments, context):
        clock.advance(45)
        return text_result("slow")

    slow = FunctionTool("echo", work)
    async with bench(busy(turns=9), tools=(slow,), budgets=Budgets(minutes=1), clock=clock) as it:
        await it.session.prompt("Work.")
        event = await ended(it)
        assert event.status == "budget"
        assert "1.5 of 1 minutes" in problem(event).message
        assert it.results() == ["slow", "slow"]


async def test_a_turn_that_hangs_is_cut_when_the_minutes_are_over(monkeypatch):
    monkeypatch.setattr("agent_core.session.runs.usage.LAST_TURN_S", 0.05)

    async def hang(arguments, context):
        await anyio.sleep_forever()
        return text_result("never")

    tool = FunctionTool("echo", hang)
    async with bench(busy(turns=9), tools=(tool,), budgets=Budgets(minutes=0.001)) as it:
        await it.session.prompt("Work.")
        event = await ended(it)
        assert (event.status, problem(event).kind) == ("budget", "BudgetExceeded")
        assert "minutes" in problem(event).message
        assert len(it.model.requests) == len(it.results()) == 1


async def test_a_run_that_has_nothing_left_to_do_is_done_whatever_it_used():
    async with bench(ScriptedModel([say("done", usage=CENT)]), budgets=Budgets(tokens=10)) as it:
        await it.session.prompt("Talk.")
        assert (await ended(it)).status == "completed"


async def test_each_run_has_the_whole_budget_and_what_waits_is_held_after_it_is_used_up():
    model = busy(turns=2, usage=CENT)
    async with bench(model, tools=(echo("echo"),), budgets=Budgets(turns=1)) as it:
        receipt = await it.session.prompt("Work.")
        await it.session.follow_up("And then?")
        assert await outcome(it, receipt.run) == "budget"
        assert (len(model.requests), it.session.info.snapshot().paused) == (1, True)
        again = await it.session.prompt("Go on.")
        assert await outcome(it, again.run) == "budget"
        assert len(model.requests) == 2


async def test_a_budget_of_money_refuses_a_model_whose_price_is_unknown():
    async with bench(busy(turns=1, priced=False), budgets=Budgets(usd=1.0)) as it:
        with pytest.raises(PriceUnknown, match=r"scripted/model-1 is not known.*models\.json"):
            await it.session.prompt("Work.")
        assert (it.model.requests, it.session.info.messages) == ([], ())


async def test_an_answer_of_unknown_cost_ends_a_run_with_a_budget_of_money():
    model = busy(turns=3, usage=Usage(input=10))
    async with bench(model, tools=(echo("echo"),), budgets=Budgets(usd=1.0)) as it:
        await it.session.prompt("Work.")
        event = await ended(it)
        assert (event.status, len(model.requests)) == ("budget", 1)
        assert "what it has cost is not known" in problem(event).message


async def test_a_session_says_its_budgets_and_takes_only_tighter_ones():
    async with bench(ScriptedModel(), budgets=Budgets(usd=2.0)) as it:
        assert it.session.info.config.budgets == Budgets(usd=2.0)
        tight = it.session.info.configure(budgets=Budgets(turns=3))
        assert tight.budgets == Budgets(usd=2.0, turns=3)
        with pytest.raises(BudgetRefused, match=r"budgets\.usd is more than the settings give"):
            it.session.info.configure(budgets=Budgets(usd=9.0), mode="plan")
        assert it.session.info.config == tight
        assert it.session.info.configure(budgets=Budgets()).budgets == Budgets(usd=2.0)


BROKEN = ProviderError("cut", reason="protocol", provider="scripted")
FULL = ProviderError("full", reason="context_overflow", provider="scripted")


@pytest.mark.parametrize("error", [BROKEN, FULL], ids=["retried", "compacted"])
async def test_answers_that_failed_count_before_another_is_paid_for(error: ProviderError):
    failing = (UsageUpdate(usage=CENT), error)
    async with bench(ScriptedModel([failing] * 9), budgets=Budgets(tokens=1_000)) as it:
        await it.session.prompt("Work.")
        event = await ended(it)
        assert (event.status, problem(event).kind) == ("budget", "BudgetExceeded")
        assert len(it.model.requests) == 1
        assert it.slept == []


async def test_failed_answers_are_retried_up_to_the_budget():
    failing = (UsageUpdate(usage=CENT), BROKEN)
    async with bench(ScriptedModel([failing] * 9), budgets=Budgets(tokens=1_500)) as it:
        await it.session.prompt("Work.")
        events = await it.idle()
        assert [e.status for e in events if isinstance(e, RunEnded)] == ["budget"]
        assert len(it.model.requests) == 2
        retries = [e for e in events if isinstance(e, RetryStarted | RetryEnded)]
        assert [type(e) for e in retries] == [RetryStarted, RetryEnded]
