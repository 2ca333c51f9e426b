"""Random runs with tasks, retries, compactions and kills: the ledger has what the provider billed, to the last digit."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from agent_core.assembly.library import read_costs
from agent_core.kernel import SystemClock
from agent_core.resources.paths import app_paths
from agent_core.storage.ledger import CostQuery, dollars
from tests.support.clients.server import Ground, calls, says
from tests.support.harness.shared import ROOT
from tests.support.harness.sizes import at_size

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
RUNS = at_size(ci=40, campaign=1_000)
KILLS_EVERY = 12
"""About so many runs a process makes before it is killed."""
PRICES = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
RATES = {name: Decimal(str(rate)) / 1_000_000 for name, rate in PRICES.items()}
WINDOW = 60_000
CHILD = """
import os, sys, anyio
from agent_core import create_session

async def main():
    while True:
        async with create_session(workspace=os.environ["ROOT"], env=dict(os.environ), trusted=True, store="memory") as session:
            for number in range(8):
                await session.prompt("Go on. " * 40)
                await session.wait_idle()
                print("run", flush=True)

anyio.run(main)
"""


def turn(random: Random, index: int) -> dict[str, Any]:
    """Return a turn whose usage no other turn has."""
    usage = {
        "input": 1_000 + index,
        "output": random.randrange(1, 400),
        "cacheRead": random.choice((0, 700)),
    }
    if random.random() < 0.05:
        usage["input"] += WINDOW - 8_000  # the next request is preceded by a compaction
    kind = random.random()
    if kind < 0.1:
        return {"status": 529}
    if kind < 0.3:
        return calls(("ls", {"path": ".", "limit": index + 1})) | {"usage": usage}
    if kind < 0.45:
        order = {"description": f"t{index}", "prompt": "Do it.", "preset": "explore"}
        return calls(*[("task", order)] * random.randrange(1, 3)) | {"usage": usage}
    return says(f"answer {index}") | {"usage": usage}


def billed(turns: Sequence[dict[str, Any]]) -> list[Decimal | None]:
    """Return the price of each turn; None: it was refused, and is not billed."""
    return [
        None
        if "status" in one
        else sum((RATES[name] * count for name, count in one["usage"].items()), Decimal(0))
        for one in turns
    ]


def run_and_kill(env: dict[str, str], root: Path, random: Random) -> int:
    """Make runs in a process until it is killed at some moment; return how many it made."""
    most, made = random.randrange(1, 2 * KILLS_EVERY), 0
    with subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD], cwd=root, env=env, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in process.stdout:
            made += 1
            if made >= most:
                break
        os.kill(process.pid, signal.SIGKILL)
    return made


def rows_of(ground: Ground) -> dict[str, list[Decimal]]:
    """Return the known costs of the calls by their status."""
    connection = sqlite3.connect(ground.dirs.data / "costs.sqlite3")
    rows = connection.execute("SELECT status, cost FROM calls WHERE cost IS NOT NULL").fetchall()
    connection.close()
    found: dict[str, list[Decimal]] = {"completed": [], "failed": []}
    for status, cost in rows:
        found[status].append(dollars(cost))
    return found


def test_the_ledger_has_what_the_provider_billed(ground: Ground) -> None:
    random = Random(26)  # noqa: S311 - a fixed seed
    compaction = {"reserveTokens": 10_000, "keepRecentTokens": 200}
    ground.configure(retry={"baseDelayMs": 1}, compaction=compaction)
    path = ground.dirs.config / "models.json"
    models = json.loads(path.read_text("utf-8"))
    (model,) = models["providers"]["lab"]["models"]
    model.update(cost=PRICES, contextWindow=WINDOW)
    path.write_text(json.dumps(models), encoding="utf-8")
    turns = [turn(random, index) for index in range(RUNS * 8)]
    ground.provider.script(turns)
    env = {
        **ground.env,
        "ROOT": str(ground.root),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}",
    }
    made = kills = 0
    while made < RUNS:
        made += run_and_kill(env, ground.root, random)
        kills += 1
    asked = [one for one in ground.provider.log(bodies="without") if one["method"] == "POST"]
    prices = billed(turns)[: len(asked)]
    report = anyio.run(read_costs, app_paths(ground.env), CostQuery(by="purpose"), SystemClock())
    total = report.total
    assert report.problems == ()
    assert {one.key for one in report.sums} >= {"main", "task", "compaction"}
    rows = rows_of(ground)
    # A killed process leaves at most the calls that it had open.
    lost = [price for price in prices if price is not None]
    for cost in rows["completed"]:
        lost.remove(cost)
    assert sum(rows["completed"]) + sum(lost) == sum(one for one in prices if one is not None)
    assert sum(rows["completed"]) == total.usd
    assert len(lost) <= total.open <= 3 * kills
    assert sum(lost) <= total.at_most_usd
    assert rows["failed"] == [Decimal(0)] * len(rows["failed"])
    print(f"{made} runs, {kills} kills, {len(asked)} calls, {len(lost)} without a known end")
