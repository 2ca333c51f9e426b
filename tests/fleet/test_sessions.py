"""Sessions in the tables of the fleet: the conformance of every store, and the fence of the writer."""

import pytest
from sqlalchemy import delete, select, update

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionDamaged, StorageUnavailable
from tests.storage.conformance import StoreConformance
from tests.storage.conformance_reading import ReadingConformance
from tests.support.session.entries import assistant, chain, entry, header, user
from tiller_server.fleet.errors import FenceLost
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore

ENTRY = tables.SESSION_ENTRY


@pytest.fixture
def slots(database: FleetDatabase) -> SlotStore:
    """Create two slots."""
    made = SlotStore(database)
    made.make(2)
    return made


@pytest.fixture
def store(database: FleetDatabase, slots: SlotStore) -> FleetSessions:
    """Create the store of a process with a slot."""
    return FleetSessions(database, slots.adopt(host="here", boot="1"))


class TestFleetSessions(StoreConformance, ReadingConformance):
    """Every store's conformance."""


def end_leases(database: FleetDatabase) -> None:
    """End the lease of each slot, as the time does."""
    with database.begin() as connection:
        _ = connection.execute(update(tables.SLOT).values(expires_ms=0))


def numbers(database: FleetDatabase) -> list[tuple[int, int]]:
    """Return number and fence of each entry."""
    query = select(ENTRY.c.seq, ENTRY.c.fence).order_by(ENTRY.c.seq)
    with database.begin() as connection:
        return [(row[0], row[1]) for row in connection.execute(query)]


async def test_a_worker_that_lost_its_slot_appends_nothing(
    database: FleetDatabase, slots: SlotStore, store: FleetSessions
) -> None:
    lost = await store.create(header())
    await lost.append(chain(user("a")))
    end_leases(database)
    with pytest.raises(FenceLost, match="entry 2 of the session 's1' was not written"):
        await lost.append([entry("e2", assistant("b"), parent="e1")])
    keeper = FleetSessions(database, slots.adopt(host="there", boot="1"))
    opened = await keeper.open(SessionId("s1"))
    with pytest.raises(FenceLost):
        await lost.append([entry("e2", assistant("b"), parent="e1")])
    await opened.log.append([entry("e3", assistant("c"), parent="e1")])
    assert numbers(database) == [(1, 1), (2, 2)]
    await lost.close()
    await opened.log.append([entry("e4", user("d"), parent="e3")])
    await opened.log.close()
    assert [one.id for one in (await keeper.read(SessionId("s1"))).entries] == ["e1", "e3", "e4"]


async def test_a_lost_worker_begins_no_session(
    database: FleetDatabase, store: FleetSessions
) -> None:
    log = await store.create(header())
    end_leases(database)
    with pytest.raises(FenceLost):
        await log.append(chain(user("a")))
    assert numbers(database) == []


async def test_a_process_without_a_slot_reads_only(
    database: FleetDatabase, store: FleetSessions
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a")))
    reader = FleetSessions(database)
    assert [one.session for one in await reader.list()] == ["s1"]
    for refused in (reader.open(SessionId("s1")), reader.create(header("s2"))):
        with pytest.raises(StorageUnavailable, match="written by its workers only"):
            _ = await refused
    await log.close()


async def test_a_session_with_a_gap_is_damaged(
    database: FleetDatabase, store: FleetSessions
) -> None:
    log = await store.create(header())
    await log.append(chain(user("a"), assistant("b"), user("c")))
    await log.close()
    with database.begin() as connection:
        _ = connection.execute(delete(ENTRY).where(ENTRY.c.seq == 2))
    with pytest.raises(SessionDamaged, match="has 2 of its 3 entries"):
        _ = await store.read(SessionId("s1"))
