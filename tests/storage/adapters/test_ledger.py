"""The ledger in SQLite: rows are written once, wait when they cannot be written, and limits count what goes on."""

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import RunId, SessionId
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.ledger import SqliteLedger
from agent_core.storage.ledger import CallRow, CostQuery, SpendingLimit, picodollars

DAY = "2026-11-28"


def row(id_: str, *, session: str = "s", folder: str = "/p", reserved: str | None = "1") -> CallRow:
    return CallRow(
        id=id_,
        at_ms=0,
        day=DAY,
        session=SessionId(session),
        root=SessionId(session),
        run=RunId("r"),
        turn=None,
        folder=folder,
        purpose="main",
        provider="lab",
        model="m",
        price="v",
        reserved=None if reserved is None else picodollars(Decimal(reserved)),
    )


def ended(begun: CallRow, usd: str | None) -> CallRow:
    cost = None if usd is None else picodollars(Decimal(usd))
    return replace(begun, input=10, cost=cost, status="completed", total_ms=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "costs.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    opened = SqliteLedger(path)
    yield opened
    opened.close()


@pytest.fixture
def hasty(path: Path) -> Iterator[SqliteLedger]:
    """Return a ledger that waits for nobody and tries again at once."""
    opened = SqliteLedger(path, busy_ms=10, retry_s=0)
    yield opened
    opened.close()


async def test_sums_are_exact_and_an_unknown_cost_is_no_zero(ledger: SqliteLedger) -> None:
    for number in range(10):
        begun = row(f"c{number}")
        ledger.reserve(begun)
        await ledger.settle(ended(begun, "0.1"))
    ledger.reserve(row("killed", reserved="0.7"))
    unpriced = row("unpriced", reserved=None)
    await ledger.settle(ended(unpriced, None))
    total = (await ledger.report(CostQuery())).total
    assert (total.calls, total.usd, total.input) == (12, Decimal(1), 110)
    assert (total.unknown, total.unpriced, total.open) == (2, 1, 1)
    assert total.at_most_usd == Decimal("0.7")


async def test_a_row_that_is_written_twice_is_one_row_and_its_end_holds(
    ledger: SqliteLedger,
) -> None:
    begun = row("c")
    await ledger.settle(ended(begun, "0.2"))
    ledger.reserve(begun)
    total = (await ledger.report(CostQuery())).total
    assert (total.calls, total.usd, total.unknown) == (1, Decimal("0.2"), 0)


async def test_rows_wait_while_another_process_has_the_ledger_locked(
    hasty: SqliteLedger, path: Path
) -> None:
    await hasty.settle(ended(row("before"), "0.1"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with anyio.fail_after(5):
        begun = row("during")
        hasty.reserve(begun)
        await hasty.settle(ended(begun, "0.2"))
        assert await hasty.reserve_within(row("within"), [limit("9")]) is None
    report = await hasty.report(CostQuery())
    assert report.total.calls == 1
    (problem,) = report.problems
    assert problem.startswith("3 rows wait to be written (database is locked)")
    other.execute("COMMIT")
    other.close()
    report = await hasty.report(CostQuery())
    assert (report.total.calls, report.total.usd, report.problems) == (3, Decimal("0.3"), ())


async def test_rows_of_a_process_that_has_ended_are_taken_over_by_the_next(path: Path) -> None:
    first = SqliteLedger(path, busy_ms=10)
    await first.settle(ended(row("before"), "0.1"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await first.settle(ended(row("late"), "0.2"))
    await to_thread.run_sync(first.close)
    other.execute("COMMIT")
    other.close()
    second = SqliteLedger(path)
    report = await second.report(CostQuery())
    await to_thread.run_sync(second.close)
    assert (report.total.calls, report.problems) == (2, ())


@pytest.fixture
def damaged(path: Path) -> Path:
    path.parent.mkdir()
    path.write_bytes(b"no database " * 1_000)
    return path


async def test_a_damaged_ledger_is_kept_and_a_new_one_begins(damaged: Path) -> None:
    ledger = SqliteLedger(damaged)
    await ledger.settle(ended(row("c"), "0.2"))
    report = await ledger.report(CostQuery())
    await to_thread.run_sync(ledger.close)
    assert report.total.calls == 1
    (problem,) = report.problems
    assert "a damaged ledger was put aside as" in problem
    (kept,) = await to_thread.run_sync(lambda: [*damaged.parent.glob("costs.sqlite3.damaged-*")])
    assert kept.suffix.startswith(".damaged-")


async def test_a_ledger_that_can_be_written_nowhere_stops_no_call(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    ledger = SqliteLedger(blocked / "costs.sqlite3")
    begun = row("c")
    assert await ledger.reserve_within(begun, [limit("9")]) is None
    await ledger.settle(ended(begun, "0.2"))
    with pytest.raises(StorageUnavailable, match="cannot be read"):
        await ledger.report(CostQuery())
    await to_thread.run_sync(ledger.close)


async def test_rows_are_held_in_memory_when_the_file_of_waiting_rows_cannot_be_written_either(
    hasty: SqliteLedger, path: Path
) -> None:
    await hasty.settle(ended(row("before"), "0.1"))
    waiting = path.with_suffix(".waiting.jsonl")
    waiting.mkdir()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    await hasty.settle(ended(row("during"), "0.2"))
    blocker.execute("COMMIT")
    blocker.close()
    waiting.rmdir()
    report = await hasty.report(CostQuery())
    assert (report.total.calls, report.problems) == (2, ())


async def test_limits_count_the_calls_of_a_ledger_of_an_earlier_version(path: Path) -> None:
    first = SqliteLedger(path)
    await first.settle(ended(row("c"), "0.6"))
    first.reserve(row("open", reserved="0.3"))
    await to_thread.run_sync(first.close)
    old = sqlite3.connect(path, isolation_level=None)
    for trigger in ("call_begun", "call_ended"):
        old.execute(f"DROP TRIGGER {trigger}")
    old.execute("DROP TABLE spending")
    old.execute("PRAGMA user_version = 1")
    old.close()
    second = SqliteLedger(path)
    assert await second.reserve_within(row("next", reserved="1"), [limit("1")]) is None
    why = await second.reserve_within(row("more"), [limit("1")])
    await to_thread.run_sync(second.close)
    assert why is not None
    assert "0.6000 of 1 US dollars are spent" in why
    assert "may have cost up to 1.3000" in why


def limit(usd: str, *, folder: str | None = None) -> SpendingLimit:
    return SpendingLimit(setting="budgets.dayUsd", usd=float(usd), day=DAY, folder=folder)


async def test_a_limit_counts_calls_that_go_on_in_another_process(path: Path) -> None:
    ours, theirs = SqliteLedger(path), SqliteLedger(path)
    assert await theirs.reserve_within(row("theirs", reserved="2"), [limit("1")]) is None
    why = await ours.reserve_within(row("ours"), [limit("1")])
    assert why is not None
    assert "may have cost up to 2.0000" in why
    assert await ours.reserve_within(row("ours"), [limit("1", folder="/other")]) is None
    await to_thread.run_sync(ours.close)
    await to_thread.run_sync(theirs.close)


async def test_a_call_waits_for_those_of_this_process_that_may_end_below_the_limit(
    ledger: SqliteLedger,
) -> None:
    first = row("first", session="one", reserved="2")
    assert await ledger.reserve_within(first, [limit("1")]) is None
    answers: list[str | None] = []

    async def second() -> None:
        begun = row("second", session="two", reserved="2")
        answers.append(await ledger.reserve_within(begun, [limit("1")]))

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        await ledger.settle(ended(first, "0.4"))
    assert answers == [None]


async def test_a_session_never_waits_for_its_own_call(ledger: SqliteLedger) -> None:
    assert await ledger.reserve_within(row("outer", reserved="2"), [limit("1")]) is None
    with anyio.fail_after(2):
        assert await ledger.reserve_within(row("inner"), [limit("1")]) is not None
