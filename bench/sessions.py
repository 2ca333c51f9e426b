"""What stored sessions cost: opening and appending beside the least that it can cost, and the memory they hold."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pydantic_core

from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import Cost, Usage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import AnyEntry, Header
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import ROOT, MeasurementFailedError, Workshop
from tests.support.session.entries import assistant, call, compaction, entry, header, result, user

ENTRIES = 10_000
MANY = 100_000
LARGE_BYTES = 100_000_000
CHARS = 250
COMPACTED_EVERY = 2_000
KEPT = 40
APPENDS = 500
MIB = 1 << 20

_FRESH = """
import sys; sys.path.insert(0, {root!r})
import anyio, json
from pathlib import Path
from agent_core.assembly import builder, factory
from agent_core.kernel import SystemClock
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import ColdEntry
def status(key):
    line = next(one for one in open("/proc/self/status") if one.startswith(key))
    return int(line.split()[1]) / 1024
async def main():
    bare = status("VmRSS")
    opened = await JsonlStore(Path({folder!r}), SystemClock()).open("s1")
    transcript = opened.transcript
    cold = sum(isinstance(one, ColdEntry) for one in transcript.entries)
    print(json.dumps([bare, status("VmRSS"), status("VmHWM"), len(transcript), cold]))
anyio.run(main)
"""


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Open, append, and look at fresh processes that hold large sessions."""
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        folder = Path(name)
        rows = [
            await _opening(plan, folder / "plain", plain_entries(ENTRIES), "no compaction"),
            await _opening(plan, folder / "compacted", _compacted(ENTRIES), "compactions"),
            await _appending(plan, folder / "appended"),
        ]
        plain = await written(folder / "many", plain_entries(MANY))
        rows += _memory(plan, shop, plain, f"{MANY:,} entries, no compaction")
        large = await written(folder / "large", _compacted(MANY, of_bytes=LARGE_BYTES))
        size = large.stat().st_size / 1e6
        rows += _memory(plan, shop, large, f"{MANY:,} entries, compactions, {size:.0f} MB")
    return rows


async def _opening(plan: Plan, folder: Path, entries: Iterator[AnyEntry], what: str) -> Row:
    path = await written(folder, entries)
    store = JsonlStore(folder, SystemClock())

    async def ours() -> float:
        began = time.perf_counter()
        opened = await store.open(SessionId("s1"))
        took = time.perf_counter() - began
        await opened.log.close()
        return took * 1000

    async def floor() -> float:
        began = time.perf_counter()
        decoded = [pydantic_core.from_json(line) for line in path.read_bytes().splitlines()]
        took = time.perf_counter() - began
        del decoded
        return took * 1000

    mine, theirs = await _warm(plan, ours, floor)
    return Row(
        what=f"session of {ENTRIES:,} entries opened, {what}",
        unit="ms",
        ours=tuple(mine),
        peer=Peer(name="read the file, from_json a line", samples=tuple(theirs)),
        bar=Bar(of="ratio", at_most=3.0),
        note=f"{path.stat().st_size / 1e6:.1f} MB",
    )


async def _appending(plan: Plan, folder: Path) -> Row:
    log = await JsonlStore(folder, SystemClock()).create(header())
    await log.append([_said(0)])
    plain = os.open(folder / "plain", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    number = 0

    async def ours() -> float:
        nonlocal number
        began = time.perf_counter()
        for _ in range(APPENDS):
            number += 1
            await log.append([_said(number)])
        return (time.perf_counter() - began) / APPENDS * 1e6

    async def floor() -> float:
        line = b"x" * 400
        began = time.perf_counter()
        for _ in range(APPENDS):
            await anyio.to_thread.run_sync(os.write, plain, line)
        return (time.perf_counter() - began) / APPENDS * 1e6

    try:
        mine, theirs = await _warm(plan, ours, floor)
    finally:
        os.close(plain)
        await log.close()
    return Row(
        what="entry appended, not forced to the disk",
        unit="us",
        ours=tuple(mine),
        peer=Peer(name="write in a worker thread", samples=tuple(theirs)),
        bar=Bar(of="median", at_most=200.0),
        note=f"mean of {APPENDS} each",
    )


async def _warm(
    plan: Plan, ours: Callable[[], Awaitable[float]], floor: Callable[[], Awaitable[float]]
) -> tuple[list[float], list[float]]:
    await ours()
    await floor()
    return await alternate(plan.rounds * 3, ours, floor)


def _memory(plan: Plan, shop: Workshop, path: Path, what: str) -> list[Row]:
    seen = [fresh_process(shop, path) for _ in range(plan.rounds)]
    entries, cold = seen[0][3:]
    peer = Peer(name="the same process before", samples=tuple(one[0] for one in seen))
    rows = (("RSS", 1), ("most RSS while opening", 2))
    return [
        Row(
            what=f"{name}, {what}",
            unit="MiB",
            ours=tuple(one[place] for one in seen),
            peer=peer,
            bar=Bar(of="median", at_most=250e6 / MIB),
            note=f"{entries - cold:,.0f} of {entries:,.0f} entries whole",
        )
        for name, place in rows
    ]


def fresh_process(shop: Workshop, path: Path) -> tuple[float, ...]:
    """Open the session in a process of its own; gives MiB before, after and at most, and counts."""
    source = _FRESH.format(root=str(ROOT), folder=str(path.parent.parent))
    said = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", "-c", source],
        env=dict(shop.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode != 0:
        raise MeasurementFailedError(said.stderr[-2_000:])
    return tuple(float(one) for one in json.loads(said.stdout))


async def written(folder: Path, entries: Iterator[AnyEntry], head: Header | None = None) -> Path:
    """Write a session the way the product writes one."""
    log = await JsonlStore(folder, SystemClock()).create(head or header())
    batch: list[AnyEntry] = []
    for one in entries:
        batch.append(one)
        if len(batch) == COMPACTED_EVERY:
            await log.append(batch)
            batch.clear()
    if batch:
        await log.append(batch)
    await log.close()
    if log.location is None:
        raise MeasurementFailedError("the session was not written to a file")
    return log.location


def plain_entries(count: int) -> Iterator[AnyEntry]:
    """Return prompts and answers that follow one another."""
    return map(_said, range(count))


def _compacted(count: int, *, of_bytes: int = 0) -> Iterator[AnyEntry]:
    """Prompts, tool calls, results and answers, with a compaction now and then."""
    chars = max(CHARS, 2 * (of_bytes // count - CHARS))
    for number in range(count):
        if number % COMPACTED_EVERY == COMPACTED_EVERY - 1:
            kept = f"{number - KEPT:08x}"
            yield compaction(
                f"{number:08x}",
                parent=f"{number - 1:08x}",
                first_kept=kept,
                summary=_words(1, 6_000),
            )
        else:
            yield _worked(number, chars)


def _worked(number: int, result_chars: int) -> AnyEntry:
    """One of a turn's messages, as the number says; results take most of the room."""
    match number % 6:
        case 0:
            message = user(_words(number, CHARS))
        case 1 | 3:
            asked = call("read", {"path": f"src/{number}.py"}, call_id=f"call_{number}")
            message = assistant(_words(number, 80), asked, usage=_usage(number))
        case 2 | 4:
            message = result(_words(number, result_chars), call_id=f"call_{number - 1}")
        case _:
            message = assistant(_words(number, CHARS), usage=_usage(number))
    return entry(f"{number:08x}", message, parent=_parent(number))


def _said(number: int) -> AnyEntry:
    words = _words(number, CHARS)
    message = user(words) if number % 2 == 0 else assistant(words, usage=_usage(number))
    return entry(f"{number:08x}", message, parent=_parent(number))


def _parent(number: int) -> EntryId | None:
    return EntryId(f"{number - 1:08x}") if number else None


def _usage(number: int) -> Usage:
    return Usage(
        input=1_000 + number,
        output=number % 900,
        cache_read=number,
        cost=Cost(input=number * 1e-6, output=number * 3e-6),
    )


def _words(number: int, chars: int) -> str:
    return f"{number} {'lorem ipsum ' * (chars // 12 + 1)}"[:chars]


BENCHMARK = Benchmark(name="sessions", title="Stored sessions", run=measure)
