"""One client stops reading while three others work: they do not notice, and little is held for it."""

import asyncio
import ctypes
import gc
import os
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typing_extensions import override

from bench.kit import percentile
from tests.e2e.faults.test_stuck_client import SOCKET_BYTES, Seat, contention, seated
from tests.support.clients.server import Ground, prompt
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import Subscription
from tests.support.workspace.processes import resident_bytes
from tiller_server.cli.in_process_server import SWITCH_S
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig
from tiller_server.process.gc_tuning import IncrementalGc

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PAUSE_S = at_size(ci=5, campaign=60)
OTHERS = 3
MB = 1024 * 1024
DELTA = "x" * 59 + " "
DELTAS_A_SECOND = 500
"""Forty times what a fast model says; in a minute it is more than any queue holds."""
TRIES = 3
RATIO = 1.2
LAG_S = 0.05
HELD_BYTES = 4 * MB
TICK_S = 0.005
PACE_S = 0.02
"""Between two prompts of one client; three that never pause would be all that is measured."""


@dataclass(slots=True, kw_only=True)
class Figures:
    """What one phase showed."""

    took_s: list[float] = field(default_factory=list[float])
    lags_s: list[float] = field(default_factory=list[float])
    held_bytes: int = 0
    grown_bytes: int = 0

    @property
    def p95_s(self) -> float:
        return percentile(self.took_s, 95)

    @override
    def __str__(self) -> str:
        return (
            f"{len(self.took_s)} runs of the others, p95 {self.p95_s * 1000:.1f} ms; the loop came back "
            f"{percentile(self.lags_s, 99) * 1000:.1f} ms late (p99), {max(self.lags_s) * 1000:.1f} ms at most; "
            f"{self.held_bytes / MB:.2f} MB held for the fourth; the process grew by {self.grown_bytes / MB:.1f} MB"
        )


@pytest.fixture
def looks() -> Generator[IncrementalGc]:
    """Let threads take turns, and the collector look, as in the process of a server."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    with IncrementalGc().held() as looks:
        yield looks
    sys.setswitchinterval(before)


async def test_three_who_work_do_not_notice_one_who_does_not_read(
    ground: Ground, looks: IncrementalGc
) -> None:
    long = {
        "text": DELTA * DELTAS_A_SECOND * PAUSE_S,
        "deltas": DELTAS_A_SECOND * PAUSE_S,
        "delta_delay_s": 1 / DELTAS_A_SECOND,
    }
    # What is said in a minute is more than the model's window holds.
    ground.configure(compaction={"enabled": False})
    ground.provider.script(
        [
            {"when": "ping", "text": "pong", "repeat": -1},
            {"when": "flood", **long, "repeat": -1},
        ]
    )
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with (
        Runtime(config, on_loaded=looks.begin) as runtime,
        seated(runtime, ground.root, socket_bytes=SOCKET_BYTES) as fourth,
    ):
        stream = fourth.client.subscribe()
        await stream.ready()
        tries, missed = 0, ["nothing tried"]
        while missed and tries < TRIES:
            tries += 1
            missed = await _compared(runtime, fourth, stream, ground.root.parent / f"try{tries}")
            print(f"try {tries}, not held: {missed}")
    assert missed == []


async def _compared(
    runtime: Runtime, fourth: Seat, stream: Subscription, folder: Path
) -> list[str]:
    """Work while the fourth reads and while it does not; gives the limits of time that were not held.

    What must always hold is checked. Other work on the machine only adds to times, and to the longest one most of all.
    """
    # Workers of their own for each, or the second ones would carry the longer past.
    async with _workers(runtime, folder / "free") as workers:
        free = await _phase(fourth, workers)
    await stream.wait(type="run.ended", timeout_s=60)
    slower = contention()
    fourth.client.stop_reading()
    async with _workers(runtime, folder / "stuck") as workers:
        stuck = await _phase(fourth, workers)
    slower = max(slower, contention())
    print(f"it reads:   {free}\nit does not: {stuck}\n{slower:.2f} times slower than alone")
    fourth.client.resume_reading()
    await _caught_up(stream)
    assert stuck.held_bytes <= HELD_BYTES
    assert stuck.grown_bytes - max(free.grown_bytes, 0) <= HELD_BYTES * slower
    held = {
        "answers": stuck.p95_s <= max(free.p95_s * RATIO, 0.01) * slower,
        "the loop": max(stuck.lags_s) <= max(LAG_S * slower, max(free.lags_s) * 1.5),
    }
    return [name for name, is_held in held.items() if not is_held]


async def _phase(fourth: Seat, workers: list[tuple[Seat, Subscription]]) -> Figures:
    """Let all work for a while."""
    figures = Figures()
    before = _live_bytes()
    _ = fourth.client.call("agent/prompt", prompt("flood"))
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(_watch(fourth, figures))
        until = time.monotonic() + PAUSE_S
        working = [tasks.create_task(_work(one, figures, until)) for one in workers]
        _ = await asyncio.wait(working)
        watching.cancel()
    figures.grown_bytes = _live_bytes() - before
    return figures


def _live_bytes() -> int:
    """Return the memory of this process without garbage, which differs by 8 MB from one phase to the other."""
    _ = gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes(os.getpid())


async def _work(worker: tuple[Seat, Subscription], figures: Figures, until: float) -> None:
    seat, stream = worker
    while time.monotonic() < until:
        begun, last = time.perf_counter(), stream.last or 0
        accepted = await seat.client.request("agent/prompt", prompt("ping"))
        await stream.wait(type="run.ended", run=accepted["run"], after=last)
        figures.took_s.append(time.perf_counter() - begun)
        stream.forget()
        _forget(seat)
        await asyncio.sleep(PACE_S)


async def _watch(fourth: Seat, figures: Figures) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(TICK_S)
        figures.lags_s.append(time.perf_counter() - begun - TICK_S)
        figures.held_bytes = max(figures.held_bytes, fourth.held_bytes)
        _forget(fourth)


def _forget(seat: Seat) -> None:
    """Drop what the client keeps of what it got: this process is the server's too, and what it holds is measured."""
    seat.client.received.clear()
    seat.client.arrived_at.clear()


async def _caught_up(stream: Subscription) -> None:
    """Wait until the client has the end of its second run, in ranges without a hole, or was left behind."""
    last = stream.last or 0
    waiting = asyncio.ensure_future(  # noqa: TID251 - awaited below
        stream.wait(type="run.ended", after=last, timeout_s=60)
    )
    await asyncio.wait([waiting, stream.call.answer], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert stream.faults == []


@asynccontextmanager
async def _workers(
    runtime: Runtime, folder: Path
) -> AsyncGenerator[list[tuple[Seat, Subscription]]]:
    async with AsyncExitStack() as things:
        workers: list[tuple[Seat, Subscription]] = []
        for number in range(OTHERS):
            root = folder / f"other{number}"
            root.mkdir(parents=True)
            seat = await things.enter_async_context(seated(runtime, root))
            stream = seat.client.subscribe()
            await stream.ready()
            accepted = await seat.client.request("agent/prompt", prompt("ping"))
            await stream.wait(type="run.ended", run=accepted["run"])
            workers.append((seat, stream))
        yield workers
