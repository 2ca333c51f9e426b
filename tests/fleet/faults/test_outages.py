"""Workers that are stopped past their lease, and databases and networks that go away: all invariants hold."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.fleet.fault_bench import stop_between_writes
from tests.support.fleet.fleet_runs import supervised_fleet
from tests.support.fleet.recording_office import recording_office
from tests.support.fleet.tcp_proxy import tcp_proxy
from tests.support.harness.sizes import at_size
from tests.support.programs.postgres import PostgresCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ENDED = frozenset({0, 1, -signal.SIGTERM})
"""Exit codes of a worker that is ended by a signal: after its jobs, without its lease, or while it starts."""
SEEDS = range(at_size(ci=1, campaign=50))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_that_is_stopped_past_its_lease_writes_nothing_and_ends(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    with (
        recording_office() as office,
        supervised_fleet(tmp_path, database_url, office, workers=1, slots=1) as fleet,
    ):
        jobs = fleet.submit(4, repos=2)
        stopped = fleet.workers[0]
        # The more calls it waits for, the later in its jobs it is stopped.
        fleet.wait_for(lambda: sum(office.calls.values()) > seed % 8)
        first = fleet.alive_slots()
        stop_between_writes(stopped, fleet.database)
        try:
            _ = fleet.start()
            fleet.wait_for(lambda: bool(fleet.alive_slots().keys() - first.keys()))
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        fleet.workers.remove(stopped)
        assert stopped.wait(timeout=60) == 1, fleet.report()
        fleet.wait_until_ended()
        assert set(fleet.stop()) <= ENDED, fleet.report()
        fleet.check(jobs, repeats=4 * len(jobs))


@pytest.mark.parametrize("fault", ["restart", "backend"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_database_that_crashes_loses_nothing(
    durable_postgres: PostgresCluster, tmp_path: Path, fault: str, seed: int
) -> None:
    name = durable_postgres.make_database()
    with (
        recording_office() as office,
        supervised_fleet(tmp_path, durable_postgres.url(name), office) as fleet,
    ):
        jobs = fleet.submit(6, repos=3)
        fleet.wait_for(lambda: sum(office.calls.values()) > seed % 12)
        if fault == "restart":
            durable_postgres.restart_immediately()
        else:
            durable_postgres.kill_backend(name, turn=seed)
            durable_postgres.wait_until_ready()
        fleet.database.engine.dispose()
        fleet.wait_until_ended()
        assert set(fleet.stop()) <= ENDED, fleet.report()
        fleet.check(jobs, repeats=8 * len(jobs))
    durable_postgres.drop_database(name)


@pytest.mark.parametrize("fault", ["stalled", "cut"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_that_stalls_or_is_cut_costs_the_lease_at_most(
    postgres: PostgresCluster, tmp_path: Path, fault: str, seed: int
) -> None:
    name = postgres.make_database()
    with (
        recording_office() as office,
        tcp_proxy(postgres.port) as proxy,
        supervised_fleet(
            tmp_path,
            postgres.url(name),
            office,
            worker_url=postgres.url(name, port=proxy.port),
        ) as fleet,
    ):
        jobs = fleet.submit(6, repos=3)
        fleet.wait_for(lambda: sum(office.calls.values()) > seed % 12)
        before = set(fleet.alive_slots())
        if fault == "stalled":
            proxy.stall()
            fleet.wait_for(lambda: not before & set(fleet.alive_slots()))
            proxy.go_on()
        else:
            proxy.cut()
        fleet.wait_until_ended()
        assert set(fleet.stop()) <= ENDED, fleet.report()
        fleet.check(jobs, repeats=8 * len(jobs))
    postgres.drop_database(name)
