"""How long an editor waits for its first answer: spawn to `initialize` answered, against bare pygls."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from statistics import median

from bench.client import Client
from bench.cost import cpu_s
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Lab, Workshop
from tests.support.lsp.lsp_profiles import MINIMAL, VSCODE, Profile

MAX_RATIO = 1.3
PEER = "bare pygls"
Start = Callable[[None], AbstractAsyncContextManager[Client]]


@dataclass(frozen=True, slots=True)
class Started:
    """One start."""

    wall_ms: float
    cpu_ms: float


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start both servers in turn, for an editor that declares nothing and for one like VS Code."""
    async with shop.lab() as lab:
        for start in (lab.tiller, lab.bare_pygls):
            await _start(lab, start, VSCODE)
        python = [await _interpreter_ms(lab) for _ in range(plan.starts)]
        rows = [row for profile in (VSCODE, MINIMAL) for row in await _rows(plan, lab, profile)]
    return [
        *rows,
        Row(what="the interpreter alone, `-c pass` to its exit", unit="ms", ours=tuple(python)),
    ]


async def _rows(plan: Plan, lab: Lab, profile: Profile) -> list[Row]:
    ours, bare = await alternate(
        plan.starts,
        lambda: _start(lab, lab.tiller, profile),
        lambda: _start(lab, lab.bare_pygls, profile),
    )
    what = f"spawn to `initialize` answered, {profile.name} client"
    pairs = [one.wall_ms / other.wall_ms for one, other in zip(ours, bare, strict=True)]
    return [
        Row(
            what=what,
            unit="ms",
            ours=tuple(one.wall_ms for one in ours),
            peer=Peer(name=PEER, samples=tuple(one.wall_ms for one in bare)),
            bar=Bar(of="ratio", at_most=MAX_RATIO),
            note=f"ratio pair by pair {median(pairs):.2f} [{min(pairs):.2f}..{max(pairs):.2f}]",
        ),
        Row(
            what="CPU until then",
            unit="ms",
            ours=tuple(one.cpu_ms for one in ours),
            peer=Peer(name=PEER, samples=tuple(one.cpu_ms for one in bare)),
        ),
    ]


async def _start(lab: Lab, start: Start, profile: Profile) -> Started:
    began = time.monotonic()
    async with start(None) as client:
        answered = await client.introduce(profile, lab.workspace)
        return Started((answered - began) * 1000, cpu_s(client.pid) * 1000)


async def _interpreter_ms(lab: Lab) -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", "pass", env=lab.env, cwd=lab.workspace
    )
    await process.wait()
    return (time.monotonic() - began) * 1000


BENCHMARK = Benchmark(name="cold-start", title="Cold start", run=measure)
