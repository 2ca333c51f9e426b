"""Budgets from the command line and from an editor: exit code 4, `run.ended`, and nothing beyond the settings."""

from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.programs.terminal import tiller
from tests.support.session.session_files import read_entries

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LOOK = ("ls", {"path": "."})


@pytest.mark.parametrize(
    ("option", "amount"), [("--max-turns", "2"), ("--max-tokens", "1"), ("--max-minutes", "0")]
)
def test_a_run_that_reaches_its_limit_ends_with_4(ground: Ground, option: str, amount: str) -> None:
    ground.provider.script([calls(LOOK) for _ in range(5)])
    ran = tiller(ground, "run", "--json", option, amount, "Look around.")
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    assert (ran.code, ended["status"], ended["error"]["kind"]) == (4, "budget", "BudgetExceeded")
    calls_made = [event for event in ran.lines if event["type"] == "tool.ended"]
    assert len(calls_made) == len(ground.provider.requests) <= 2


def test_money_is_no_limit_for_a_model_without_a_price(ground: Ground) -> None:
    ground.provider.script([says("done")])
    ran = tiller(ground, "run", "--budget-usd", "0.5", "Talk.")
    assert (ran.code, ground.provider.requests) == (2, [])
    assert "the price of lab/m is not known" in ran.err


@pytest.mark.parametrize("amount", ["-1", "nan", "inf", "much", ""])
def test_an_amount_that_is_none_is_refused(ground: Ground, amount: str) -> None:
    ran = tiller(ground, "run", f"--budget-usd={amount}", "Talk.")
    assert (ran.code, ground.provider.requests) == (2, [])
    assert "invalid amount" in ran.err


async def test_an_editor_may_only_tighten_what_the_settings_give(ground: Ground) -> None:
    ground.configure(budgets={"turns": 3})
    ground.provider.script([calls(LOOK) for _ in range(5)])
    options = {"agent": {"budgets": {"turns": 9, "minutes": 60}}}
    async with ground.client(PANEL, options=options) as client:
        session = (await client.request("agent/session/open", {}))["session"]

        async def configure(**change: Any) -> Any:
            asked = {"session": session, "set": change}
            return (await client.request("agent/session/configure", asked))["config"]["budgets"]

        assert await configure() == {"turns": 3, "minutes": 60}
        with pytest.raises(ClientError, match=r"budgets\.turns is more than the settings give"):
            await configure(budgets={"turns": 4})
        assert await configure(budgets={"turns": 1}) == {"turns": 1, "minutes": 60}
        assert await configure(budgets=None) == {"turns": 3, "minutes": 60}


def test_answers_that_break_off_use_up_the_limit(ground: Ground) -> None:
    ground.configure(api="anthropic-messages", retry={"baseDelayMs": 20})
    cut = {"text": "all that " * 40, "deltas": 20, "cut_after_bytes": 1500}
    ground.provider.script([{**cut, "usage": {"input": 5000}, "repeat": 5}])
    ran = tiller(ground, "run", "--json", "--max-tokens", "6000", "Talk.")
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    print(ran.code, len(ground.provider.requests), ended["status"], ended["usage"])
    assert (ran.code, ended["status"], len(ground.provider.requests)) == (4, "budget", 2)
    assert ended["usage"]["tokens"]["in"] == 10_000
    (session,) = ground.sessions()
    kept = [
        entry["message"]["usage"]["input"]
        for entry in read_entries(session)
        if "message" in entry and "usage" in entry["message"]
    ]
    assert kept == [5000, 5000]


def test_a_model_that_repeats_itself_is_stopped_without_any_limit(ground: Ground) -> None:
    ground.provider.script([{**calls(LOOK), "repeat": 40}, says("done")])
    ran = tiller(ground, "run", "--json", "Look around.")
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    print(ran.code, len(ground.provider.requests), ended["status"], ended.get("error"))
    assert (ran.code, ended["status"], ended["error"]["kind"]) == (1, "failed", "CallsRepeated")
    assert len(ground.provider.requests) == 8
