"""What the daemon costs an editor that starts: spawn to `initialize` answered through the shim, with a daemon and without."""

import asyncio
import signal
import sys
import time
from statistics import median

from bench.cost import cpu_s
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import START_S, Lab, MeasurementFailedError, Workshop
from tests.support.clients.shims import end_daemon
from tests.support.lsp.lsp_profiles import VSCODE

WARM_MS = 100.0
AIM_MS = 46.0
COLD_RATIO = 1.3
PEER = "bare pygls"


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start shims on a warm daemon, and shims that start it, beside the least that they could cost."""
    async with shop.lab() as lab:
        try:
            await start_shim(lab)  # the daemon, and the bytecode of both
            return [*await _warm(plan, lab), *await _cold(plan, lab)]
        finally:
            end_daemon(lab.env)


async def _warm(plan: Plan, lab: Lab) -> list[Row]:
    cpus: list[float] = []

    async def start() -> float:
        wall, cpu = await start_shim(lab)
        cpus.append(cpu)
        return wall

    walls, floor = await alternate(plan.starts * 3, start, lambda: _interpreter(lab))
    return [
        Row(
            what="spawn of the shim to `initialize` answered, warm daemon",
            unit="ms",
            ours=tuple(walls),
            peer=Peer(name="the interpreter alone, `-S -c pass` to its exit", samples=tuple(floor)),
            bar=Bar(of="median", at_most=WARM_MS),
            note=f"the aim is {AIM_MS:g} ms; best {min(walls):.1f}",
        ),
        Row(what="CPU of the shim until then", unit="ms", ours=tuple(cpus)),
    ]


async def _cold(plan: Plan, lab: Lab) -> list[Row]:
    ours, bare = await alternate(
        plan.starts, lambda: cold_start_ms(lab), lambda: bare_start_ms(lab)
    )
    pairs = [one / other for one, other in zip(ours, bare, strict=True)]
    return [
        Row(
            what="spawn of the shim to `initialize` answered, no daemon yet",
            unit="ms",
            ours=tuple(ours),
            peer=Peer(name=PEER, samples=tuple(bare)),
            bar=Bar(of="ratio", at_most=COLD_RATIO),
            note=f"ratio pair by pair {median(pairs):.2f} [{min(pairs):.2f}..{max(pairs):.2f}]",
        )
    ]


async def start_shim(lab: Lab) -> tuple[float, float]:
    """Return wall time and CPU of one shim, in ms."""
    began = time.monotonic()
    async with lab.shim() as client:
        answered = await client.introduce(VSCODE, lab.workspace)
        cost = (answered - began) * 1000, cpu_s(client.pid) * 1000
        await client.shutdown(timeout_s=START_S)
        await client.exit(timeout_s=START_S)
        if "without the daemon" in client.stderr:
            raise MeasurementFailedError(client.stderr)
        return cost


async def cold_start_ms(lab: Lab) -> float:
    """Return the milliseconds until a shim without a daemon has answered."""
    await asyncio.to_thread(end_daemon, lab.env, by=signal.SIGKILL)
    return (await start_shim(lab))[0]


async def bare_start_ms(lab: Lab) -> float:
    """Return the milliseconds until bare pygls has answered."""
    began = time.monotonic()
    async with lab.bare_pygls(None) as client:
        return (await client.introduce(VSCODE, lab.workspace) - began) * 1000


async def _interpreter(lab: Lab) -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", "pass", env=lab.env, cwd=lab.workspace
    )
    await process.wait()
    return (time.monotonic() - began) * 1000


BENCHMARK = Benchmark(name="shim", title="The shim", run=measure)
