"""How long the ledger of model calls holds up a call."""

import tempfile
import time
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import SessionId, uuid7
from agent_core.storage.adapters.ledger import SqliteLedger
from agent_core.storage.ledger import CallRow, SpendingLimit
from bench.kit import Bar, Benchmark, Plan, Row
from bench.lab import Workshop

CALL_MS: Final = Bar(of="median", at_most=0.2)
CALLS: Final = 400
"""Calls for each round."""
DAY: Final = "2026-11-28"
LIMIT: Final = SpendingLimit(setting="budgets.dayUsd", usd=1e6, day=DAY)


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Write rows as model calls do, with and without a budget of a day, into a ledger that has thousands."""
    del shop
    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger(Path(folder) / "costs.sqlite3")
        plain = await _calls(ledger, plan.rounds * CALLS)
        limited = await _calls(ledger, plan.rounds * CALLS, LIMIT)
        await to_thread.run_sync(ledger.close)
    return [
        Row(
            what="ledger: both rows of a model call, the second waited for",
            unit="ms",
            ours=plain,
            bar=CALL_MS,
        ),
        Row(
            what="the same under a budget of the day, both waited for",
            unit="ms",
            ours=limited,
            note=f"{len(plain)} calls of the day and more are added up each time",
        ),
    ]


async def _calls(ledger: SqliteLedger, count: int, *limits: SpendingLimit) -> tuple[float, ...]:
    taken: list[float] = []
    for _ in range(count):
        begun_s = time.perf_counter()
        row = _row()
        if limits:
            _ = await ledger.reserve_within(row, limits)
        else:
            ledger.reserve(row)
        between_s = time.perf_counter()
        # The answer of a provider comes later than the row of its request.
        await to_thread.run_sync(time.sleep, 0.001)
        ended_s = time.perf_counter()
        await ledger.settle(replace(row, input=1_000, output=100, cost=10**9, status="completed"))
        taken.append((time.perf_counter() - ended_s + between_s - begun_s) * 1000)
    return tuple(taken)


def _row() -> CallRow:
    session = SessionId("0193a1b2-0000-7000-8000-000000000000")
    return CallRow(
        id=uuid7(time.time_ns() // 1_000_000),
        at_ms=0,
        day=DAY,
        session=session,
        root=session,
        run=None,
        turn=None,
        folder="/home/u/project",
        purpose="main",
        provider="anthropic",
        model="claude",
        price="0123456789ab",
        reserved=10**12,
    )


BENCHMARK = Benchmark(name="ledger", title="Ledger of model calls", run=measure)
