"""A worker that ends gracefully, and the spare that takes its slot."""

import signal
from pathlib import Path

import pytest

from tests.support.fleet.fleet_runs import supervised_fleet
from tests.support.fleet.recording_office import recording_office
from tiller_server.fleet.store.jobs import JobStore

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_a_worker_that_is_ended_leaves_its_slot_to_the_spare(
    database_url: str, tmp_path: Path
) -> None:
    with (
        recording_office() as office,
        supervised_fleet(tmp_path, database_url, office, workers=2, slots=1) as fleet,
    ):
        fleet.wait_for(lambda: len(fleet.alive_slots()) == 1)
        (first,) = fleet.alive_slots()
        jobs = fleet.submit(3)
        fleet.wait_for(lambda: bool(office.calls))
        worker = next(one for one in fleet.workers if one.pid == first)
        worker.send_signal(signal.SIGTERM)
        fleet.workers.remove(worker)
        assert worker.wait(timeout=60) == 0, fleet.report()
        fleet.wait_until_ended()
        assert {0} == set(fleet.stop()), fleet.report()
        fleet.check(jobs)
        assert {job.attempts for job in JobStore(fleet.database).jobs()} == {1}
