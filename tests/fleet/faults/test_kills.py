"""Workers that are killed at each marked point, and often: all invariants hold on both databases."""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.fleet.fleet_runs import supervised_fleet
from tests.support.fleet.recording_office import recording_office
from tests.support.harness.sizes import at_size, is_campaign
from tiller_server.fleet.values import Job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
STEPS = ("checkout", "review", "prepare_posts", "deliver", "close")
POINTS = (
    *("adopt.after", "launch.before", "launch.after", "renew.before", "renew.after"),
    *("hand_over.before", "hand_over.after", "admit.before", "admit.after"),
    *(f"{step}.{moment}" for step in STEPS for moment in ("before", "after")),
    *("append.before", "append.after"),
    *("post.intended", "post.sending", "post.sent", "post.confirmed"),
    *("put_back.before", "put_back.after", "requeue.before", "requeue.after"),
)


ONCE = frozenset({"adopt.after", "launch.before", "launch.after"})
"""Points that a process passes once."""
WAVE = 6
MAX_WAVES = at_size(ci=3, campaign=30)


@pytest.mark.parametrize("seed", range(at_size(ci=1, campaign=50)))
def test_a_worker_is_killed_at_each_marked_point(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    randomness = random.Random(seed)  # noqa: S311 - a seed that a failure prints
    points = randomness.sample(POINTS, len(POINTS) if is_campaign() else 5)
    faults = [f"{point}:{1 if point in ONCE else randomness.randint(1, 3)}" for point in points]
    print(f"seed {seed}: {' '.join(faults)}")
    with (
        recording_office(fails_every=5) as office,
        supervised_fleet(tmp_path, database_url, office, faults=faults) as fleet,
    ):
        jobs: list[Job] = []
        for _ in range(MAX_WAVES):
            fresh = fleet.submit(WAVE, after=len(jobs))
            office.outages[str(fresh[0].id)] = 1  # it is put back once
            jobs += fresh
            fleet.wait_until_ended()
            if len(fleet.fired) == len(faults):
                break
        assert {0, -signal.SIGTERM} >= set(fleet.stop()), fleet.report()
        fleet.check(jobs)
        print(f"{len(fleet.fired)} of {len(faults)} faults met: {' '.join(fleet.fired)}")
        assert fleet.fired


@pytest.mark.skipif(not is_campaign(), reason="1,000 jobs take five minutes (make campaign)")
def test_a_thousand_jobs_end_while_a_worker_is_killed_every_two_seconds(
    database_url: str, tmp_path: Path
) -> None:
    with (
        recording_office(fails_every=50) as office,
        supervised_fleet(tmp_path, database_url, office, workers=3, slots=4) as fleet,
    ):
        jobs = fleet.submit(1000, repos=50)
        next_s = time.monotonic() + 2
        kills = 0

        def have_ended() -> bool:
            nonlocal next_s, kills
            if time.monotonic() >= next_s:
                fleet.kill(kills)
                kills += 1
                next_s = time.monotonic() + 2
            return fleet.open_jobs() == 0

        fleet.wait_for(have_ended, limit_s=1500)
        _ = fleet.stop()
        print(f"{kills} kills")
        fleet.check(jobs)
