"""One long answer beside other agents: wall time and CPU time."""

from functools import partial

from bench.cost import cpu_s
from bench.kit import Benchmark, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from bench.peers.agent import Agent, AgentFailedError, Program, turn
from bench.peers.contest import Figures, in_turns, programs, row

MAX_RATIO = 2.0
WARM = 200


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Read the longest answer of the plan in each agent, in turn."""
    deltas = max(plan.deltas)
    spent: dict[str, list[float]] = {}
    async with shop.lab() as lab:

        async def once(program: Program) -> float:
            # A fresh process: an agent that fails takes nothing of the others with it.
            async with program.start(lab) as agent:
                await _answer(lab, agent, WARM)
                wall_ms, cpu_ms = await _answer(lab, agent, deltas)
            spent.setdefault(program.name, []).append(cpu_ms)
            return wall_ms

        ways = {one.name: partial(once, one) for one in programs(shop)}
        walls = await in_turns(plan.rounds, ways)
    cpus = {
        name: Figures(tuple(spent.get(name, ())) if wall.samples else (), wall.why_none)
        for name, wall in walls.items()
    }
    what = f"an answer of {deltas:,} deltas"
    return [
        row(f"{what}: wall", "ms", walls, at_most=MAX_RATIO),
        row(f"{what}: CPU of the agent", "ms", cpus, at_most=MAX_RATIO),
    ]


async def _answer(lab: Lab, agent: Agent, deltas: int) -> tuple[float, float]:
    """Return wall and CPU time of one answer, in ms."""
    await agent.open()
    lab.provider.script([answer_of(deltas)])
    before = cpu_s(agent.pid)
    try:
        taken = await turn(agent)
        await agent.settle()
        spent_s = cpu_s(agent.pid) - before
    except OSError as error:  # it has ended
        raise AgentFailedError(str(error)) from error
    return (taken.ended - taken.sent) * 1000, spent_s * 1000


BENCHMARK = Benchmark(
    name="peer-answers", title="A long answer, beside other agents", run=measure, with_peers=True
)
