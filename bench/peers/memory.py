"""Resident memory beside other agents: idle, after a turn, and for each further workspace."""

from collections.abc import Mapping
from functools import partial

from bench.kit import Benchmark, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from bench.peers.agent import Program, turn
from bench.peers.contest import OURS, Figures, bounded, in_turns, programs, row
from bench.workspaces import WORKSPACES, weight
from tests.support.clients.daemons import daemon_process
from tests.support.workspace.processes import descendants, resident_bytes

MIB = 1024 * 1024
IDLE_MIB = 60.0
TURN_MIB = 66.0
FURTHER_MIB = 0.5
DAEMONS = 2
"""Daemons with a hundred workspaces, each about ten seconds."""


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Look at fresh processes of all, then at a daemon with many workspaces."""
    idle: dict[str, list[float]] = {}
    async with shop.lab() as lab:
        lab.provider.script([answer_of(3, repeat=-1)])

        async def once(program: Program) -> float:
            async with program.start(lab) as agent:
                await agent.settle()
                before = _resident(agent.pid)
                await agent.open()
                await turn(agent)
                idle.setdefault(program.name, []).append(before)
                return _resident(agent.pid)

        ways = {one.name: partial(once, one) for one in programs(shop)}
        turned = await in_turns(plan.rounds, ways)
        further = await _further(min(plan.rounds, DAEMONS), lab)
    started = _beside(turned, idle)
    return [
        bounded(row("RSS, idle", "MiB", started), IDLE_MIB),
        bounded(row("RSS, after a turn", "MiB", turned), TURN_MIB),
        bounded(row("RSS of each further workspace", "MiB", further), FURTHER_MIB),
    ]


def _beside(
    figures: Mapping[str, Figures], samples: Mapping[str, list[float]]
) -> dict[str, Figures]:
    return {
        name: one if one.why_none else Figures(tuple(samples[name]))
        for name, one in figures.items()
    }


async def _further(rounds: int, lab: Lab) -> dict[str, Figures]:
    each: list[float] = []
    for _ in range(rounds):
        async with daemon_process(lab.env) as daemon:
            first = await weight(lab, daemon, count=1)
            each.append((await weight(lab, daemon, count=WORKSPACES) - first) / (WORKSPACES - 1))
    return {OURS: Figures(tuple(each))}


def _resident(pid: int) -> float:
    """Return the memory of a process and of those below it, in MiB."""
    return sum(map(resident_bytes, {pid, *descendants(pid)})) / MIB


BENCHMARK = Benchmark(
    name="peer-memory", title="Memory, beside other agents", run=measure, with_peers=True
)
