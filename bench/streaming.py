"""What one long answer costs: time, CPU and bytes for thousands of deltas, against a bare reader of the same stream."""

import asyncio
import json
import math
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.client import Client, ended
from bench.cost import cpu_s
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import ROOT, Lab, MeasurementFailedError, Workshop, answer_of
from tests.support.lsp.lsp_subscription import Subscription

MAX_CPU_RATIO = 4.0
MAX_GROWTH = 1.1
PEER = "bare reader"
PAUSE_S = 0.002
"""Before each delta of the paced answer."""
WORD = "word "


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One answer read to its end."""

    wall_s: float
    cpu_s: float
    sent_bytes: int = 0
    frames: int = 0
    is_whole: bool = True
    """Whether the frames held every word, in the deltas and in the ended message."""


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Read answers of several lengths in the server and in the bare reader, in turn."""
    async with shop.lab() as lab, lab.tiller() as client, _bare_reader(lab) as bare:
        await _tiller(lab, client, 200)
        await _read(lab, bare, 200)
        rows: list[Row] = []
        sizes: list[float] = []
        for deltas in plan.deltas:
            ours, floor = await _both(plan, lab, client, bare, deltas)
            sizes.append(median(one.sent_bytes for one in ours))
            rows += _rows(deltas, ours, floor, is_longest=deltas == max(plan.deltas))
        ours, floor = await _both(plan, lab, client, bare, plan.paced, pause_s=PAUSE_S)
        return [*rows, _growth(plan.deltas, sizes), _paced(plan.paced, ours, floor)]


async def _both(
    plan: Plan,
    lab: Lab,
    client: Client,
    bare: asyncio.subprocess.Process,
    deltas: int,
    *,
    pause_s: float = 0.0,
) -> tuple[list[Cost], list[Cost]]:
    return await alternate(
        plan.rounds,
        lambda: _tiller(lab, client, deltas, pause_s=pause_s),
        lambda: _read(lab, bare, deltas, pause_s=pause_s),
    )


def _rows(deltas: int, ours: list[Cost], floor: list[Cost], *, is_longest: bool) -> list[Row]:
    whole = sum(one.is_whole for one in ours)
    named = f"{deltas:,} deltas: "
    frames = median(one.frames for one in ours)
    return [
        Row(
            what=named + "wall, prompt to run.ended",
            unit="ms",
            ours=tuple(one.wall_s * 1000 for one in ours),
            peer=Peer(name=PEER, samples=tuple(one.wall_s * 1000 for one in floor)),
            note=f"every word arrived in {whole} of {len(ours)} streams",
        ),
        Row(
            what=named + "CPU of the server",
            unit="ms",
            ours=tuple(one.cpu_s * 1000 for one in ours),
            peer=Peer(name=PEER, samples=tuple(one.cpu_s * 1000 for one in floor)),
            bar=Bar(of="ratio", at_most=MAX_CPU_RATIO) if is_longest else None,
        ),
        Row(
            what=named + "bytes to the client",
            unit="kB",
            ours=tuple(one.sent_bytes / 1000 for one in ours),
            note=f"{frames:.0f} frames, {median(one.sent_bytes for one in ours) / deltas:.1f} B a delta",
        ),
    ]


def _growth(deltas: tuple[int, ...], sizes: list[float]) -> Row:
    """Give the exponent of the bytes over the length of the answer: 1 is linear, 2 is quadratic."""
    exponent = math.log(sizes[-1] / sizes[0]) / math.log(deltas[-1] / deltas[0])
    return Row(
        what=f"growth of the bytes, {deltas[0]:,} to {deltas[-1]:,} deltas",
        unit="exponent",
        ours=(exponent,),
        bar=Bar(of="median", at_most=MAX_GROWTH),
        note="1 is linear, 2 is quadratic",
    )


def _paced(deltas: int, ours: list[Cost], floor: list[Cost]) -> Row:
    """Give the CPU of an answer whose deltas come one by one, so that none can be taken together."""
    rate = deltas / median(one.wall_s for one in ours)
    size = median(one.sent_bytes for one in ours)
    return Row(
        what=f"{deltas:,} deltas at {rate:.0f}/s: CPU of the server",
        unit="ms",
        ours=tuple(one.cpu_s * 1000 for one in ours),
        peer=Peer(name=PEER, samples=tuple(one.cpu_s * 1000 for one in floor)),
        note=f"{median(one.frames for one in ours):.0f} frames, {size / 1000:.1f} kB to the client",
    )


async def _tiller(lab: Lab, client: Client, deltas: int, *, pause_s: float = 0.0) -> Cost:
    await client.open_session()
    stream = await client.follow()
    lab.provider.script([answer_of(deltas, delta_delay_s=pause_s)])
    frames, size, cpu = len(stream.frames), client.bytes_received, cpu_s(client.pid)
    taken = await client.prompt()
    await ended(stream, taken)
    over = time.monotonic()
    # Whatever the server still has to do for the run is done before it answers this.
    await client.request("agent/status", {})
    cost = Cost(
        wall_s=over - taken.sent,
        cpu_s=cpu_s(client.pid) - cpu,
        sent_bytes=client.bytes_received - size,
        frames=len(stream.frames) - frames,
        is_whole=_is_whole(stream, deltas),
    )
    await stream.unsubscribe()
    return cost


def _is_whole(stream: Subscription, deltas: int) -> bool:
    said = "".join(event["text"] for event in stream.of("message.delta"))
    last: Any = stream.of("message.ended")[-1]
    kept = "".join(block.get("text", "") for block in last["content"])
    return said == kept == WORD * deltas


@asynccontextmanager
async def _bare_reader(lab: Lab) -> AsyncGenerator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(ROOT / "bench" / "bare_reader.py"),
        f"{lab.provider.base_url}/chat/completions",
        env=lab.env,
        cwd=lab.workspace,
        stdin=pipe,
        stdout=pipe,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _read(
    lab: Lab, bare: asyncio.subprocess.Process, deltas: int, *, pause_s: float = 0.0
) -> Cost:
    if bare.stdin is None or bare.stdout is None:
        raise MeasurementFailedError("the bare reader has no pipes")
    lab.provider.script([answer_of(deltas, delta_delay_s=pause_s)])
    asked = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "go on"}],
    }
    bare.stdin.write(json.dumps(asked).encode() + b"\n")
    line = await bare.stdout.readline()
    if not line:
        raise MeasurementFailedError("the bare reader ended; see its message above")
    spent = json.loads(line)
    return Cost(wall_s=spent["wall_s"], cpu_s=spent["cpu_s"])


BENCHMARK = Benchmark(name="streaming", title="A long answer", run=measure)
