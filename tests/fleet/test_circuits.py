"""Circuits: three failures in a row, or the other side's wish, let jobs wait."""

from tests.fleet.test_jobs import wanted
from tiller_server.fleet.store.admission import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, CircuitStore
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import Deferral, Job


def test_the_third_failure_opens_a_circuit_for_longer_and_longer(database: FleetDatabase) -> None:
    circuits = CircuitStore(database)
    pauses = [circuits.failed("forge:forge", reason="it answers 502") for _ in range(12)]
    assert pauses[:5] == [0, 0, FIRST_PAUSE_MS, FIRST_PAUSE_MS * 2, FIRST_PAUSE_MS * 4]
    assert pauses[-1] == LONGEST_PAUSE_MS


def test_jobs_wait_for_an_open_circuit_and_lose_no_attempt(database: FleetDatabase) -> None:
    circuits, jobs, slots = CircuitStore(database), JobStore(database), SlotStore(database)
    slots.make(1)
    lease = slots.adopt(host="here", boot="1")
    job = jobs.submit(wanted()).job
    assert circuits.failed("forge:forge", reason="it asked to wait", wait_ms=60_000) == 60_000
    deferral = jobs.admit(job.id, lease)
    assert isinstance(deferral, Deferral)
    assert deferral.reason == "the forge forge is not asked for now: it asked to wait"
    assert 0 < deferral.wait_ms <= 60_000
    circuits.succeeded("forge:forge")
    admitted = jobs.admit(job.id, lease)
    assert isinstance(admitted, Job)
    assert admitted.attempts == 1
