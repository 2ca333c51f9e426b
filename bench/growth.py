"""How costs grow: each figure at one, two and four times a size, as the exponent of the growth (1: in proportion)."""

import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from agent_core.assembly import create_session
from agent_core.assembly.library import open_library
from agent_core.events import Notice
from agent_core.kernel import SystemClock
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.storage.adapters.paths import file_name, slug
from agent_core.transcript.codec import encode_entry, encode_header
from bench.kit import Bar, Benchmark, Plan, Row
from bench.lab import Workshop
from bench.sessions import fresh_process, plain_entries, written
from tests.support.harness.isolation import TillerDirs, isolated
from tests.support.session.entries import chain, header, user

AT_MOST = 1.05
ENTRIES = 10_000
IN_MEMORY = 25_000
APPENDED = 500
SESSIONS = 250
SUBSCRIBERS = 50
EVENTS = 100


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Open, append, list and subscribe at three sizes, and look at the memory of fresh processes."""
    measures: dict[str, tuple[int, Callable[[int], Awaitable[float]]]] = {
        "session opened, by entries": (ENTRIES, lambda size: _opened(shop, size)),
        "entries appended": (APPENDED, lambda size: _appended(shop, size)),
        "sessions indexed": (SESSIONS, lambda size: _listed(shop, size, is_first=True)),
        "sessions listed": (SESSIONS, lambda size: _listed(shop, size, is_first=False)),
        "events published, by subscribers": (SUBSCRIBERS, lambda size: _published(shop, size)),
        "memory of an opened session, by entries": (IN_MEMORY, lambda size: _memory(shop, size)),
    }
    return [await _row(plan, what, *how) for what, how in measures.items()]


async def _row(plan: Plan, what: str, size: int, cost: Callable[[int], Awaitable[float]]) -> Row:
    _ = await cost(size)
    exponents: list[float] = []
    costs: list[tuple[float, ...]] = []
    for _ in range(plan.rounds):
        costs.append(tuple([await cost(times * size) for times in (1, 2, 4)]))
        exponents.append(math.log(costs[-1][2] / costs[-1][0], 4))
    least = " / ".join(f"{min(of_size):,.1f}" for of_size in zip(*costs, strict=True))
    unit = "MiB" if "memory" in what else "ms of CPU time"
    return Row(
        what=f"growth of: {what}",
        unit="exponent",
        ours=tuple(exponents),
        bar=Bar(of="median", at_most=AT_MOST),
        note=f"{least} {unit} at {size:,} times 1 / 2 / 4",
    )


class _Place:
    """Folders of a user, made for one figure."""

    def __init__(self, shop: Workshop, folder: Path) -> None:
        dirs = TillerDirs.below(folder.resolve())
        dirs.make()
        self.env: Mapping[str, str] = isolated(dict(shop.environ), dirs=dirs)
        self.paths = app_paths(self.env)
        self.workspace = folder.resolve() / "w"
        self.workspace.mkdir()


async def _opened(shop: Workshop, entries: int) -> float:
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        place = _Place(shop, Path(name))
        head = replace(header(), cwd=str(place.workspace))
        _ = await written(place.paths.sessions, plain_entries(entries), head)
        began = time.process_time()
        async with create_session(
            workspace=place.workspace, session=head.id, env=place.env, trusted=True
        ) as session:
            _ = session.info.snapshot()
            return (time.process_time() - began) * 1000


async def _appended(shop: Workshop, entries: int) -> float:
    async def append(session: AgentSession) -> None:
        for number in range(entries):
            _ = await session.programs.keep("bench", {"number": number})

    return await _in_session(shop, append)


async def _published(shop: Workshop, subscribers: int) -> float:
    async def publish(session: AgentSession) -> None:
        readers = [session.subscribe() for _ in range(subscribers)]
        last = f"{EVENTS}"
        for number in range(EVENTS + 1):
            session.info.events.publish(Notice(level="info", text=str(number)))
        for reader in readers:
            async for stamped in reader:
                if isinstance(stamped.event, Notice) and stamped.event.text == last:
                    break
            reader.close()

    return await _in_session(shop, publish)


async def _in_session(shop: Workshop, work: Callable[[AgentSession], Awaitable[None]]) -> float:
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        place = _Place(shop, Path(name))
        async with create_session(
            workspace=place.workspace, env=place.env, trusted=True
        ) as session:
            began = time.process_time()
            await work(session)
            return (time.process_time() - began) * 1000


async def _listed(shop: Workshop, sessions: int, *, is_first: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        place = _Place(shop, Path(name))
        _write_sessions(place, sessions)
        async with open_library(place.paths, clock=SystemClock()) as library:
            began = time.process_time()
            _ = await library.list()
            if not is_first:
                began = time.process_time()
                _ = await library.list()
            return (time.process_time() - began) * 1000


def _write_sessions(place: _Place, sessions: int) -> None:
    said = b"\n".join([*map(encode_entry, chain(user("words"), user("more words"))), b""])
    for number in range(sessions):
        head = replace(header(f"s{number}"), cwd=str(place.workspace))
        path = place.paths.sessions / slug(head.cwd) / file_name(head)
        path.parent.mkdir(parents=True, exist_ok=True)
        _ = path.write_bytes(encode_header(head) + b"\n" + said)


async def _memory(shop: Workshop, entries: int) -> float:
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        path = await written(Path(name), plain_entries(entries))
        before, after = fresh_process(shop, path)[:2]
        return after - before


BENCHMARK = Benchmark(name="growth", title="Growth", run=measure)
