"""Migrations: tables of an earlier version get what is new, and those of a later one are refused."""

import pytest
from sqlalchemy import update

from tests.fleet.test_jobs import wanted
from tiller_server.fleet.errors import FenceLost, SchemaRefused
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.migrations import VERSION
from tiller_server.fleet.store.statistics import read_statistics
from tiller_server.fleet.store.tables import COUNTER
from tiller_server.fleet.values import SlotLease


def test_tables_of_the_first_version_get_the_counters(database: FleetDatabase) -> None:
    job = JobStore(database).submit(wanted()).job
    with database.begin() as connection:
        COUNTER.drop(connection)
        _ = connection.execute(update(VERSION).values(version=1))
    database.migrate()
    database.migrate()
    with pytest.raises(FenceLost):
        _ = JobStore(database).admit(job.id, SlotLease(slot=9, fence=1))
    assert read_statistics(database).refused_writes == 1
    assert JobStore(database).job(job.id) == job


def test_tables_of_a_later_version_are_refused(database: FleetDatabase) -> None:
    with database.begin() as connection:
        _ = connection.execute(update(VERSION).values(version=99))
    with pytest.raises(SchemaRefused, match="of version 99"):
        database.migrate()
