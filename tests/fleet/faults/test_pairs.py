"""Two faults in one run: a second one comes while the first is not over, and all invariants hold on both databases."""

import random
import signal
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.fleet.fault_bench import ANYWHERE, OF_POSTGRES, REPEATS, Fault, FaultBench
from tests.support.fleet.fleet_runs import SupervisedFleet, supervised_fleet
from tests.support.fleet.recording_office import recording_office
from tests.support.fleet.tcp_proxy import tcp_proxy
from tests.support.harness.sizes import at_size, is_campaign
from tests.support.programs.postgres import PostgresCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
Pair = tuple[Fault, Fault]
ENDED = frozenset({0, 1, -signal.SIGTERM})
"""Exit codes of a worker that is ended by a signal: after its jobs, without its lease, or while it starts."""
SEEDS = range(at_size(ci=1, campaign=50))
FEW: Sequence[Pair] = (("forge", "kill"), ("stop", "forge"))
FEW_OF_POSTGRES: Sequence[Pair] = (("stop", "stall"), ("kill", "restart"), ("forge", "cut"))
PAIRS = list(permutations(ANYWHERE, 2)) if is_campaign() else FEW
PAIRS_OF_POSTGRES = (
    [pair for pair in permutations((*ANYWHERE, *OF_POSTGRES), 2) if set(pair) & set(OF_POSTGRES)]
    if is_campaign()
    else FEW_OF_POSTGRES
)


def run(bench: FaultBench, pair: Pair, seed: int) -> None:
    """Run jobs through two faults, the second before the first has ended, and check the invariants."""
    randomness = random.Random(f"{pair}{seed}")  # noqa: S311 - a seed that a failure prints
    fleet = bench.fleet
    jobs = fleet.submit(6, repos=3)
    first, second = pair
    for fault in pair:
        if fault == first or first != "stall":  # behind a stalled network no call comes
            _wait_for_calls(fleet, randomness.randint(1, 4))
        bench.begin(fault, turn=randomness.randint(0, 9))
    print(f"seed {seed}: {first} and {second} after {sum(fleet.office.calls.values())} calls")
    for fault in (second, first):
        bench.end(fault)
    fleet.wait_until_ended()
    assert set(fleet.stop()) <= ENDED, fleet.report()
    fleet.check(jobs, repeats=len(jobs) * (REPEATS[first] + REPEATS[second]))


def _wait_for_calls(fleet: SupervisedFleet, count: int) -> None:
    """Wait for so many more model calls, or the end of all jobs."""
    calls = sum(fleet.office.calls.values()) + count
    fleet.wait_for(lambda: sum(fleet.office.calls.values()) >= calls or fleet.open_jobs() == 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_faults_of_processes_and_forges_lose_and_repeat_nothing(
    database_url: str, tmp_path: Path, pair: Pair, seed: int
) -> None:
    with (
        recording_office() as office,
        supervised_fleet(tmp_path, database_url, office) as fleet,
    ):
        run(FaultBench(fleet=fleet), pair, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pair", PAIRS_OF_POSTGRES, ids="-".join)
def test_two_faults_of_which_one_is_the_database_or_its_network_lose_and_repeat_nothing(
    durable_postgres: PostgresCluster, tmp_path: Path, pair: Pair, seed: int
) -> None:
    name = durable_postgres.make_database()
    with (
        recording_office() as office,
        tcp_proxy(durable_postgres.port) as proxy,
        supervised_fleet(
            tmp_path,
            durable_postgres.url(name),
            office,
            worker_url=durable_postgres.url(name, port=proxy.port),
        ) as fleet,
    ):
        run(FaultBench(fleet=fleet, cluster=durable_postgres, name=name, proxy=proxy), pair, seed)
    durable_postgres.drop_database(name)
