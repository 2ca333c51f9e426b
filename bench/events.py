"""What events cost on their way out: encoding, a flood of deltas, and how late a delta is."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_core.events import Event, EventEnvelope, MessageDelta, MessageStarted
from agent_core.kernel import ItemId, RunId, TurnId
from agent_core.kernel.json import encode
from bench.kit import Bar, Benchmark, Peer, Plan, Row, percentile
from bench.lab import Workshop
from tests.support.session.told import Client, Sink, chance_of, course, keeping, told
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.events.encoding import EventBytes

EVENTS = 100_000
DELTAS = 20_000
AT_ONCE = 50
"""How many deltas a fast provider's chunk holds."""
PACED = 300
PACE_S = 0.005
READERS = 4
OF: dict[str, Any] = {"run": RunId("r" * 36), "turn": TurnId("t" * 36), "item": ItemId("i" * 36)}


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Tell events to subscribers in this process, over a sink that takes everything."""
    _ = shop
    mixed, deltas = _mixed(), _deltas(EVENTS)
    rows = [
        _encoding("deltas", deltas, plan.rounds),
        _encoding("all kinds of events", mixed, plan.rounds),
    ]
    walls: list[float] = []
    sizes: list[float] = []
    shared: list[float] = []
    for _ in range(plan.rounds):
        wall_s, size = await _flood(readers=1)
        walls.append(wall_s * 1000)
        sizes.append(size / 1000)
        shared.append((await _flood(readers=READERS))[0] * 1000)
    late = await _late()
    return [
        *rows,
        Row(
            what=f"{DELTAS:,} deltas, told to received",
            unit="ms",
            ours=tuple(walls),
            bar=Bar(of="median", at_most=500),
        ),
        Row(
            what=f"{DELTAS:,} deltas, bytes to the client",
            unit="kB",
            ours=tuple(sizes),
            bar=Bar(of="median", at_most=2000),
        ),
        Row(
            what=f"{DELTAS:,} deltas to {READERS} subscribers",
            unit="ms",
            ours=tuple(shared),
            peer=Peer(name="one subscriber", samples=tuple(walls)),
        ),
        Row(
            what=f"how late a delta is, one every {PACE_S * 1000:.0f} ms",
            unit="ms",
            ours=tuple(one * 1000 for one in late),
            bar=Bar(of="p95", at_most=45),
            note=f"p95 {percentile(late, 95) * 1000:.1f} ms",
        ),
    ]


def _encoding(what: str, events: list[EventEnvelope], rounds: int) -> Row:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(rounds):
        known = EventBytes()
        ready = [serializer.event(one) for one in events]
        begun = time.thread_time()
        for one in events:
            known.of(one)
        ours.append((time.thread_time() - begun) / len(events) * 1e6)
        begun = time.thread_time()
        for one in ready:
            encode(one)
        floor.append((time.thread_time() - begun) / len(events) * 1e6)
    return Row(
        what=f"{what}, encoded",
        unit="us an event",
        ours=tuple(ours),
        peer=Peer(name="a ready dict to JSON", samples=tuple(floor)),
        bar=Bar(of="median", at_most=10),
        note=f"{1e6 / min(ours):,.0f} a second on one core",
    )


def _deltas(count: int) -> list[EventEnvelope]:
    return [
        EventEnvelope(seq=n, first=n, at_ms=n // 10, event=MessageDelta(**OF, text="word "))
        for n in range(1, count + 1)
    ]


def _mixed() -> list[EventEnvelope]:
    events: list[Event] = []
    seed = 0
    while len(events) < EVENTS // 5:
        events += course(chance_of(seed), runs=20)
        seed += 1
    return [
        EventEnvelope(seq=n, first=n, at_ms=n // 10, event=one) for n, one in enumerate(events, 1)
    ]


async def _flood(*, readers: int) -> tuple[float, int]:
    async with AsyncExitStack() as things:
        folder = things.enter_context(TemporaryDirectory(prefix="tl-"))
        source = told(Path(folder) / "s.events.jsonl")
        await things.enter_async_context(keeping(source))
        clients = [Client() for _ in range(readers)]
        sinks = [await things.enter_async_context(one.following(source)) for one in clients]
        for client, sink in zip(clients, sinks, strict=True):
            await client.reach(sink, 0)
        before = sinks[0].taken_bytes
        begun = time.perf_counter()
        source.tell(MessageStarted(**OF, role="assistant"))
        for _ in range(DELTAS // AT_ONCE):
            source.tell(*[MessageDelta(**OF, text="word ")] * AT_ONCE)
            await asyncio.sleep(0)
        for client, sink in zip(clients, sinks, strict=True):
            await client.reach(sink, source.events.newest)
        return time.perf_counter() - begun, sinks[0].taken_bytes - before


async def _late() -> list[float]:
    """Give how long each delta of an even stream took to arrive."""
    async with AsyncExitStack() as things:
        folder = things.enter_context(TemporaryDirectory(prefix="tl-"))
        source = told(Path(folder) / "s.events.jsonl")
        await things.enter_async_context(keeping(source))
        client = Client()
        sink = await things.enter_async_context(client.following(source, flush_ms=40))
        await client.reach(sink, 0)
        source.tell(MessageStarted(**OF, role="assistant"))
        await client.reach(sink, source.events.newest)
        told_at: list[float] = []
        watching = asyncio.ensure_future(  # noqa: TID251 - awaited below
            _arrivals(client, sink, first=source.events.newest, count=PACED)
        )
        for _ in range(PACED):
            told_at.append(time.perf_counter())
            source.tell(MessageDelta(**OF, text="word "))
            await asyncio.sleep(PACE_S)
        arrived = await watching
        return [came - sent for came, sent in zip(arrived, told_at, strict=True)]


async def _arrivals(client: Client, sink: Sink, *, first: int, count: int) -> list[float]:
    arrived: list[float] = []
    while len(arrived) < count:
        came = sink.came
        client.take(sink)
        last = client.reduced.last or first
        arrived += [time.perf_counter()] * (last - first - len(arrived))
        if len(arrived) < count:
            await came.wait()
    return arrived


BENCHMARK = Benchmark(name="events", title="Events on their way out", run=measure)
