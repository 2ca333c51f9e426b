"""Opening a long stored session beside other agents: in a fresh process each, and through a warm daemon."""

import asyncio
from functools import partial

from bench.kit import Benchmark, Plan, Row
from bench.lab import Workshop
from bench.peers.agent import Program
from bench.peers.contest import OURS, able, in_turns, programs, row, unable
from bench.peers.tiller import Tiller
from tests.support.clients.shims import end_daemon

ENTRIES = 10_000
TO_CODEX = 1.0


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Open the session in fresh processes of all, then in one daemon of ours beside them."""
    contestants = programs(shop)
    chosen = able(contestants, "stored")
    peers = [one for one in chosen if one.name != OURS]
    others = unable(contestants, "stored")
    async with shop.lab() as lab:
        sessions = {one.name: await one.store(lab, ENTRIES) for one in chosen}

        async def once(program: Program) -> float:
            async with program.start(lab) as agent:
                return await agent.open(sessions[program.name]) * 1000

        async def through_daemon(program: Program) -> float:
            # A session of its own: the daemon would still hold the last one.
            session = await program.store(lab, ENTRIES)
            async with program.start(lab) as agent:
                return await agent.open(session) * 1000

        beside = {one.name: partial(once, one) for one in peers}
        what = f"open a session of {ENTRIES:,} entries"
        daemon = Tiller(way="daemon")
        try:
            await through_daemon(daemon)
            ways = {**beside, OURS: partial(through_daemon, daemon)}
            warm = await in_turns(plan.rounds, ways)
        finally:
            await asyncio.to_thread(end_daemon, lab.env)
        fresh = await in_turns(plan.rounds, {one.name: partial(once, one) for one in chosen})
    return [
        row(f"{what}, {way}", "ms", figures, against="codex", at_most=TO_CODEX)
        for way, figures in (("warm daemon", warm | others), ("in process", fresh | others))
    ]


BENCHMARK = Benchmark(
    name="peer-stored", title="A stored session, beside other agents", run=measure, with_peers=True
)
