"""Jobs in the tables: once per key, admitted by limits, written by the worker that has them alone."""

import pytest

from tiller_server.fleet.errors import FenceLost, JobEnded, JobNotRepeatable, JobSpent
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.store.statistics import read_statistics
from tiller_server.fleet.values import ChangeName, Deferral, Job, JobRequest, SlotLease


def wanted(number: int = 1, head: str = "a", *, repo: str = "team/app") -> JobRequest:
    """Return a request for a review."""
    change = ChangeName(forge="forge", repo=repo, number=number)
    return JobRequest(kind="review", change=change, head=head * 40, base="main", cause="person")


@pytest.fixture
def slots(database: FleetDatabase) -> SlotStore:
    """Create two slots."""
    made = SlotStore(database)
    made.make(2)
    return made


def lease_of(slots: SlotStore) -> SlotLease:
    """Adopt a slot."""
    return slots.adopt(host="here", boot="1")


def test_a_key_is_submitted_once(database: FleetDatabase) -> None:
    jobs = JobStore(database)
    first = jobs.submit(wanted())
    again = jobs.submit(wanted())
    assert (first.is_new, again.is_new) == (True, False)
    assert first.job == again.job


def test_a_push_supersedes_the_job_of_the_former_head(
    database: FleetDatabase, slots: SlotStore
) -> None:
    jobs = JobStore(database)
    lease = lease_of(slots)
    old = jobs.submit(wanted(head="a")).job
    assert isinstance(jobs.admit(old.id, lease), Job)
    new = jobs.submit(wanted(head="b"))
    assert new.superseded == (old.id,)
    with pytest.raises(JobEnded, match="the change moved on to bbbb"):
        _ = jobs.advance(old.id, lease, "posting")


def test_a_limit_defers_without_an_attempt(database: FleetDatabase, slots: SlotStore) -> None:
    jobs = JobStore(database, limits=FleetLimits(per_repo=1))
    lease = lease_of(slots)
    first, second = (jobs.submit(wanted(number)).job for number in (1, 2))
    assert isinstance(jobs.admit(first.id, lease), Job)
    deferral = jobs.admit(second.id, lease)
    assert isinstance(deferral, Deferral)
    assert deferral.reason == "the repository team/app has reached its limit of running jobs, 1"
    assert jobs.job(second.id).attempts == 0
    _ = jobs.finish(first.id, lease, "done")
    assert isinstance(jobs.admit(second.id, lease), Job)


def test_a_worker_that_lost_its_slot_writes_nothing(database: FleetDatabase) -> None:
    slots = SlotStore(database, lease_ms=-1)  # a lease that is over at once
    slots.make(1)
    jobs = JobStore(database)
    lost = lease_of(slots)
    job = jobs.submit(wanted()).job
    slots = SlotStore(database)
    keeper = lease_of(slots)
    assert (keeper.slot, keeper.fence) == (lost.slot, lost.fence + 1)
    with pytest.raises(FenceLost):
        _ = jobs.admit(job.id, lost)
    assert isinstance(jobs.admit(job.id, keeper), Job)
    with pytest.raises(FenceLost):
        _ = jobs.finish(job.id, lost, "done")
    assert jobs.finish(job.id, keeper, "done").state == "done"
    assert read_statistics(database).refused_writes == 2


def test_a_job_that_no_worker_survives_fails(database: FleetDatabase, slots: SlotStore) -> None:
    jobs = JobStore(database, limits=FleetLimits(max_attempts=2))
    lease = lease_of(slots)
    job = jobs.submit(wanted()).job
    for _ in range(2):
        assert isinstance(jobs.admit(job.id, lease), Job)
    for _ in range(2):  # the worker that ends it may be lost, too
        with pytest.raises(JobSpent, match="begun 2 times"):
            _ = jobs.admit(job.id, lease)
    assert jobs.job(job.id).attempts == 2
    _ = jobs.finish(job.id, lease, "failed")
    again = jobs.retry(job.id)
    assert (again.state, again.attempts, again.round) == ("queued", 0, 1)
    with pytest.raises(JobNotRepeatable):
        _ = jobs.retry(job.id)


def test_a_job_that_is_put_back_keeps_its_attempts(
    database: FleetDatabase, slots: SlotStore
) -> None:
    jobs = JobStore(database)
    lease = lease_of(slots)
    job = jobs.submit(wanted()).job
    assert isinstance(jobs.admit(job.id, lease), Job)
    back = jobs.put_back(job.id, lease, reason="the provider is down", wait_ms=60_000)
    assert (back.state, back.attempts) == ("queued", 0)
    assert isinstance(jobs.admit(job.id, lease), Deferral)
