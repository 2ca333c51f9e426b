"""How long `tiller run` takes from its start until the model has the request, beside Python's own imports."""

import asyncio
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Command, Lab, Workshop, answer_of

MAX_RATIO = 1.5
IMPORTS = "import httpx, pydantic"
LEAST = """
import sys, anyio, httpx, pydantic
class Message(pydantic.BaseModel):
    role: str
    content: str
class Asked(pydantic.BaseModel):
    model: str
    messages: list[Message]
    stream: bool
async def main():
    asked = Asked(model="m", messages=[Message(role="user", content=sys.argv[2])], stream=True)
    async with httpx.AsyncClient(http2=True) as client:
        await client.post(sys.argv[1] + "/chat/completions", content=asked.model_dump_json())
anyio.run(main)
"""
"""What says one prompt with the libraries that we are built on, and does nothing else."""
FOREVER = -1
PROMPT = "Say one word."


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start them in turn, each in a fresh process; the first start of each is not counted."""
    async with shop.lab() as lab:
        lab.provider.script([answer_of(1, repeat=FOREVER)])
        ours = _ours(lab)
        imports = Command([sys.executable, "-P", "-c", IMPORTS], lab.env)
        for way in (ours, imports):
            await _ended_ms(lab, way)
        mine, theirs = await alternate(
            plan.starts, lambda: requested_ms(lab, ours), lambda: _ended_ms(lab, imports)
        )
        pairs = [one / other for one, other in zip(mine, theirs, strict=True)]
        rows = [
            Row(
                what="`tiller run`, spawn to the provider's request",
                unit="ms",
                ours=tuple(mine),
                peer=Peer(name=f"Python, `{IMPORTS}`, to its exit", samples=tuple(theirs)),
                bar=Bar(of="ratio", at_most=MAX_RATIO),
                note=f"ratio pair by pair {median(pairs):.2f} [{min(pairs):.2f}..{max(pairs):.2f}]",
            )
        ]
        return [*rows, await _least(plan, lab)]


async def _least(plan: Plan, lab: Lab) -> Row:
    """Say how much of the bar a program of ten lines takes: nobody who uses these libraries is below."""
    least = Command([sys.executable, "-P", "-c", LEAST, lab.provider.base_url, PROMPT], lab.env)
    imports = Command([sys.executable, "-P", "-c", IMPORTS], lab.env)
    await requested_ms(lab, least)
    mine, theirs = await alternate(
        plan.starts, lambda: requested_ms(lab, least), lambda: _ended_ms(lab, imports)
    )
    peer = Peer(name=f"Python, `{IMPORTS}`, to its exit", samples=tuple(theirs))
    what = "a program of ten lines with anyio, httpx and pydantic, to its request"
    return Row(what=what, unit="ms", ours=tuple(mine), peer=peer)


def _ours(lab: Lab) -> Command:
    return Command(lab.tiller_argv("run", "--no-session", "--trust", PROMPT), lab.env)


async def requested_ms(lab: Lab, way: Command) -> float:
    """Run a command to its end; returns the milliseconds from its start until the provider had its request."""
    began, before = time.monotonic(), len(lab.provider.log(bodies="without"))
    await _finished(way, lab.workspace)
    log: list[Any] = lab.provider.log(bodies="without")[before:]
    asked = [one for one in log if one["method"] == "POST"]
    if not asked:
        message = f"{way.argv[0]} asked the provider nothing"
        raise RuntimeError(message)
    # The provider's monotonic clock is ours: it belongs to the machine.
    return (float(asked[0]["head_at"]) - began) * 1000


async def _ended_ms(lab: Lab, way: Command) -> float:
    began = time.monotonic()
    await _finished(way, lab.workspace)
    return (time.monotonic() - began) * 1000


async def _finished(way: Command, cwd: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *way.argv,
        env=dict(way.env),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode != 0:
        message = f"{way.argv[0]} ended with {process.returncode}: {said.decode()[-500:]}"
        raise RuntimeError(message)


BENCHMARK = Benchmark(name="run-started", title="`tiller run`", run=measure)
