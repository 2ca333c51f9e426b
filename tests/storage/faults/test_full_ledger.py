"""The cost ledger on a disk that fills up: the calls go on, and no row is lost when there is room again."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.storage.adapters.ledger import SqliteLedger
from agent_core.storage.ledger import CostQuery
from tests.storage.adapters.test_ledger import ended, limit, row
from tests.storage.faults.small_disk import SmallDisk, small_disk

CALLS = 60


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as given:
        yield given


async def call(ledger: SqliteLedger, name: str) -> None:
    begun = row(name, session=name, reserved="0.5")
    assert await ledger.reserve_within(begun, [limit("99")]) is None
    await ledger.settle(ended(begun, "0.1"))


@pytest.mark.parametrize("room", [0, 1_000])
async def test_rows_wait_for_room_and_none_is_lost(disk: SmallDisk, room: int) -> None:
    path = disk.folder / "data" / "costs.sqlite3"
    ledger = SqliteLedger(path, busy_ms=10, retry_s=0)
    await call(ledger, "before")
    waiting = path.with_suffix(".waiting.jsonl")
    # The last page of a file keeps some room: its last row is cut off somewhere.
    await to_thread.run_sync(waiting.write_bytes, bytes(room))
    await to_thread.run_sync(disk.fill)
    for number in range(CALLS):
        await call(ledger, f"c{number}")
    report = await ledger.report(CostQuery())
    assert report.total.calls < CALLS
    assert "rows wait to be written" in report.problems[0]
    await to_thread.run_sync(disk.free)
    await call(ledger, "after")
    report = await ledger.report(CostQuery())
    await to_thread.run_sync(ledger.close)
    assert (report.total.calls, report.problems) == (CALLS + 2, ())
    assert report.total.usd == Decimal("0.1") * (CALLS + 2)
