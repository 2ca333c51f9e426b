"""Every model call that a provider bills is in the ledger, and `tiller costs` shows it."""

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]
PRICE = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
SMALL = {"input": 1_000, "output": 100, "cacheRead": 2_000}
SMALL_USD = Decimal("0.0051")
"""1,000 × 3 + 100 × 15 + 2,000 × 0.3 dollars per million."""


def priced(ground: Ground, **settings: Any) -> None:
    ground.configure(**settings)
    path = ground.dirs.config / "models.json"
    models = json.loads(path.read_text("utf-8"))
    models["providers"]["lab"]["models"][0]["cost"] = PRICE
    path.write_text(json.dumps(models), encoding="utf-8")


def costs(ground: Ground, *arguments: str) -> Any:
    return json.loads(tiller(ground, "costs", "--json", *arguments).out)


def test_the_calls_of_a_run_and_its_failed_attempt_are_in_the_ledger(ground: Ground) -> None:
    priced(ground)
    reads = calls(("ls", {"path": "."}))
    ground.provider.script(
        [reads | {"usage": SMALL}, {"status": 529}, says("done") | {"usage": SMALL}]
    )
    ran = tiller(ground, "run", "look")
    assert ran.out == "done\n", ran
    report = costs(ground, "--by", "purpose")
    (row,) = report["sums"]
    assert (row["key"], row["calls"], row["unknown"]) == ("main", 3, 0)
    assert Decimal(row["usd"]) == 2 * SMALL_USD
    assert (row["input"], row["output"], row["cacheRead"]) == (2_000, 200, 4_000)
    assert report["problems"] == []
    table = tiller(ground, "costs", "--by", "model").out.splitlines()
    assert table[0].split() == ["MODEL", "CALLS", "INPUT", "CACHED", "OUTPUT", "USD"]
    assert table[1].split() == ["lab/m", "3", "2k", "4k", "200", "0.0102"]
    listed = [*csv.DictReader(io.StringIO(tiller(ground, "costs", "--csv").out))]
    assert [one["usd"] for one in listed] == ["0.0102"]


def test_a_model_without_a_price_costs_an_unknown_amount(ground: Ground) -> None:
    ground.provider.script([says("done") | {"usage": SMALL}])
    assert tiller(ground, "run", "look").code == 0
    total = costs(ground)["total"]
    assert (total["calls"], total["unknown"], total["unpriced"]) == (1, 1, 1)
    said = tiller(ground, "costs").out
    assert "≥ 0.0000" in said
    assert "1 call has no known price" in said


def test_a_task_and_its_session_are_counted_for_one_session(ground: Ground) -> None:
    priced(ground)
    order = {"description": "look", "prompt": "Say it.", "preset": "explore"}
    ground.provider.script(
        [
            calls(("task", order)) | {"usage": SMALL},
            says("it") | {"usage": SMALL},
            says("done") | {"usage": SMALL},
        ]
    )
    assert tiller(ground, "run", "look").code == 0
    kinds = {one["key"]: one["calls"] for one in costs(ground, "--by", "purpose")["sums"]}
    assert kinds == {"main": 2, "task": 1}
    (session,) = costs(ground, "--by", "session")["sums"]
    assert Decimal(session["usd"]) == 3 * SMALL_USD


@pytest.mark.parametrize("setting", ["dayUsd", "folderDayUsd"])
def test_a_day_that_has_cost_its_budget_allows_no_further_call(
    ground: Ground, setting: str
) -> None:
    priced(ground, budgets={setting: 0.008})
    reads = [calls(("ls", {"path": ".", "limit": n})) | {"usage": SMALL} for n in range(1, 5)]
    ground.provider.script(reads)
    ran = tiller(ground, "run", "--json", "look")
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    assert (ran.code, ended["status"]) == (4, "budget")
    assert "0.0102 of 0.008 US dollars are spent today" in ended["error"]["message"]
    assert f"(budgets.{setting})" in ended["error"]["message"]
    assert len(ground.provider.requests) == 2
    again = tiller(ground, "run", "look")
    assert "spent today" in again.err
    assert len(ground.provider.requests) == 2


def test_a_question_that_makes_no_sense_is_refused(ground: Ground) -> None:
    refused = tiller(ground, "costs", "--since", "yesterday")
    assert refused.code == 2
    assert "write 2026-11-28, or 7d" in refused.err
    assert tiller(ground, "costs").out == "no model calls are recorded\n"


def test_sessions_that_are_older_than_the_ledger_are_imported_once(ground: Ground) -> None:
    priced(ground)
    ground.provider.script([says("one") | {"usage": SMALL}, says("two") | {"usage": SMALL}])
    assert tiller(ground, "run", "look").code == 0
    for file in ground.dirs.data.glob("costs.sqlite3*"):
        file.unlink()
    for _ in range(2):
        total = costs(ground)["total"]
        assert (total["calls"], Decimal(total["usd"])) == (1, SMALL_USD)
    assert tiller(ground, "run", "--continue", "look").code == 0
    total = costs(ground)["total"]
    assert (total["calls"], Decimal(total["usd"])) == (2, 2 * SMALL_USD)


async def test_an_editor_gets_the_sums(ground: Ground) -> None:
    priced(ground)
    ground.provider.script([says("done") | {"usage": SMALL}])
    async with ground.client(PANEL) as client:
        session = (await client.request("agent/session/open", {}))["session"]
        before = await client.request("agent/costs", {})
        assert (before["sums"], before["total"]["calls"]) == ([], 0)
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("look"))
        await stream.wait(type="run.ended")
        report = await client.request("agent/costs", {"by": "model", "ofSession": session})
        (row,) = report["sums"]
        assert (row["key"], row["calls"], row["unknown"]) == ("lab/m", 1, 0)
        assert Decimal(row["usd"]) == SMALL_USD
        other = await client.request("agent/costs", {"by": "day", "ofSession": "another"})
        assert other["total"]["calls"] == 0
