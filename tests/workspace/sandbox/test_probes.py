"""What a contained command tries in order to get out does not work, and would work without containment."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.workspace.contained import contained
from tests.support.workspace.processes import processes_with
from tests.workspace.sandbox import probes
from tests.workspace.sandbox.deeper_probes import DEEPER
from tests.workspace.sandbox.ground import Ground, ground
from tests.workspace.sandbox.probes import Probe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probes are for Linux")
ALL = (*probes.ALL, *DEEPER)
LEAST_PROBES = 60
SWITCHES = tuple(
    Path("/proc/sys/kernel", name) for name in ("core_pattern", "hostname", "domainname")
)
BACKGROUND = 3
# Not for ever: as many as would be too many.
BOMB = """python3 -c '
import os, signal
n = 0
try:
    while n < 4000:
        if os.fork() == 0:
            signal.pause()
        n += 1
    print("BROKEN", flush=True)
except OSError as error:
    print("refused", n, error, flush=True)
'"""


@pytest.fixture(autouse=True)
def _unchanged_machine() -> Iterator[None]:
    """A probe that worked must not stay: what it turned is turned back, and fails its test."""
    before = {switch: switch.read_text() for switch in SWITCHES}
    yield
    changed = {switch: text for switch, text in before.items() if switch.read_text() != text}
    for switch, text in changed.items():
        switch.write_text(text)
    assert changed == {}


@pytest.fixture
def world() -> Iterator[Ground]:
    with ground() as made:
        yield made


@pytest.fixture
def inside(world: Ground) -> Iterator[DiskProcesses]:
    with contained(world.root, env=world.env, hidden=world.own) as sandbox:
        yield DiskProcesses(sandbox=sandbox)


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= LEAST_PROBES
    names = [probe.name for probe in ALL]
    assert len({(probe.name, probe.command) for probe in ALL}) == len(names)


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
async def test_a_contained_command_does_not_get_out(
    world: Ground, inside: DiskProcesses, probe: Probe
) -> None:
    ran = await world.run(inside, probe.command)
    assert "BROKEN" not in ran.output.splitlines(), ran.output
    # It was tried at all: had containment not come up, nothing would have been broken either.
    assert ran.end.exit_code is not None
    assert "bwrap:" not in ran.output or probe.name == "bubblewrap inside"


@pytest.mark.parametrize(
    "probe", [probe for probe in ALL if probe.works_outside], ids=lambda probe: probe.name
)
async def test_without_containment_it_works(world: Ground, probe: Probe) -> None:
    ran = await world.run(DiskProcesses(), probe.command)
    assert "BROKEN" in ran.output.splitlines(), ran.output


async def test_a_fork_bomb_is_bounded_and_leaves_nothing(
    world: Ground, inside: DiskProcesses
) -> None:
    ran = await world.run(inside, BOMB)
    assert "BROKEN" not in ran.output.splitlines(), ran.output[-500:]
    assert "refused" in ran.output
    assert ran.killed.survivors == ()
    assert processes_with(str(world.top)) == set()


async def test_what_runs_in_the_background_is_gone_with_the_command(
    world: Ground, inside: DiskProcesses
) -> None:
    ran = await world.run(inside, "for i in 1 2 3; do (setsid sleep 600 &) ; done; echo done")
    assert ran.output == "done\n"
    assert len(ran.killed.pids) == BACKGROUND
    assert processes_with(str(world.top)) == set()
