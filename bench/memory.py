"""How much memory the server holds: when it has started, when the agent is loaded, after work."""

from bench.client import Client, ended
from bench.kit import Benchmark, Peer, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from tests.support.workspace.processes import resident_bytes

MIB = 1024 * 1024
LONG_ANSWER = 20_000


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Look at the resident memory of fresh servers at each step of their life."""
    steps: dict[str, list[float]] = {}
    bare: list[float] = []
    async with shop.lab() as lab:
        for _ in range(plan.rounds):
            await _life(lab, steps)
            async with lab.bare_pygls() as client:
                bare.append(_resident(client))
    peer = Peer(name="bare pygls after initialize", samples=tuple(bare))
    return [
        Row(what=f"RSS {step}", unit="MiB", ours=tuple(samples), peer=peer)
        for step, samples in steps.items()
    ]


async def _life(lab: Lab, steps: dict[str, list[float]]) -> None:
    lab.provider.script([answer_of(3), answer_of(LONG_ANSWER)])
    async with lab.tiller() as client:
        await client.request("agent/status", {}, timeout_s=60)
        steps.setdefault("after initialize, agent loaded", []).append(_resident(client))
        await client.open_session()
        stream = await client.follow()
        await ended(stream, await client.prompt())
        steps.setdefault("after one turn", []).append(_resident(client))
        await ended(stream, await client.prompt())
        steps.setdefault(f"after an answer of {LONG_ANSWER:,} deltas", []).append(_resident(client))


def _resident(client: Client) -> float:
    return resident_bytes(client.pid) / MIB


BENCHMARK = Benchmark(name="memory", title="Memory", run=measure)
