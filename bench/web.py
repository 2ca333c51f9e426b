"""Costs of `tiller web`: CPU of its streams, latency of an editor beside them, and time to the first paint of its page."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx

from bench.client import Client, ended
from bench.cost import cpu_s
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate, alternate_all
from bench.lab import ROOT, START_S, Lab, MeasurementFailedError, Workshop, answer_of
from tests.support.clients.shims import end_daemon
from tests.support.lsp.lsp_profiles import VSCODE
from tiller_server.daemon import paths
from tiller_server.daemon.lockfile import owner

STREAMS: Final = 4
MAX_CPU_RATIO: Final = 2.0
MAX_DELAY_RATIO: Final = 1.5
MAX_BESIDE_RATIO: Final = 1.15
"""Medians of an editor with and without streams: the same, but for noise."""
MAX_PAINT_MS: Final = 1000.0
MAX_PAGE_KB: Final = 250.0
FOREVER: Final = -1
PAUSE_S: Final = 0.002
FLOOD: Final = "flood"
FLOOD_DELTAS: Final = 20_000
FLOODING: Final = answer_of(FLOOD_DELTAS, delta_delay_s=0.001, when=FLOOD, repeat=FOREVER)
LONG_S: Final = 300.0
CLIENT: Final = ROOT / "vscode-client"
NODE: Final = Path(sys.prefix) / "node" / "bin" / "node"
PAINT: Final = CLIENT / "e2e" / "paint.ts"
BROWSER: Final = Path("/usr/bin/chromium")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A `tiller web` that runs."""

    pid: int
    url: str
    port: int
    token: str

    async def ask(self, script: httpx.AsyncClient, method: str, **params: Any) -> Any:
        """Send a request of the agent; returns its result."""
        answer = await script.post("/v1/rpc", json={"method": method, "params": params})
        if "result" not in answer.json():
            raise MeasurementFailedError(answer.text)
        return answer.json()["result"]

    def script(self) -> httpx.AsyncClient:
        """Return a client of a script."""
        headers = {"authorization": f"Bearer {self.token}"}
        origin = f"http://127.0.0.1:{self.port}"
        return httpx.AsyncClient(base_url=origin, headers=headers, timeout=LONG_S)

    async def connect(self, session: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Ask for the events of a session and read no further than the head of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = (
            f"GET /v1/events?sessions={session} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"authorization: Bearer {self.token}\r\n\r\n"
        )
        writer.write(head.encode())
        await reader.readuntil(b"agent/snapshot")
        return reader, writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An editor and a `tiller web` at one daemon."""

    plan: Plan
    lab: Lab
    client: Client
    site: Site
    script: httpx.AsyncClient


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Measure streams beside one subscriber of an editor, an editor beside streams, and the page."""
    async with shop.lab() as lab:
        try:
            async with lab.shim() as client:
                await client.introduce(VSCODE, lab.workspace)
                async with _served(lab) as site, site.script() as script:
                    scene = Scene(plan=plan, lab=lab, client=client, site=site, script=script)
                    rows = [
                        await _cpu(scene, max(plan.deltas)),
                        await _cpu(scene, plan.paced, pause_s=PAUSE_S),
                        await _suspended(scene),
                        *await _latency(scene),
                    ]
            return [*rows, *await _page(plan, lab)]
        finally:
            end_daemon(lab.env)


@asynccontextmanager
async def _served(lab: Lab) -> AsyncGenerator[Site]:
    process = await asyncio.create_subprocess_exec(
        *lab.tiller_argv("web", "--no-open", "--port", "0"),
        env=lab.env,
        cwd=lab.workspace,
        stdout=asyncio.subprocess.PIPE,
    )
    if process.stdout is None:
        raise MeasurementFailedError("tiller web has no output")
    try:
        async with asyncio.timeout(START_S):
            url = (await process.stdout.readline()).decode().strip()
        port = httpx.URL(url).port or 0
        transport = httpx.AsyncHTTPTransport(retries=20)
        async with httpx.AsyncClient(transport=transport, timeout=START_S) as client:
            await client.get(f"http://127.0.0.1:{port}/healthz")
        file = anyio.Path(paths.runtime_folder(lab.env), f"web-{port}.token")
        token = (await file.read_text("utf-8")).strip()
        yield Site(pid=process.pid, url=url, port=port, token=token)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def _daemon(lab: Lab) -> int:
    holder = owner(Path(paths.lock_path(lab.env)))
    if holder is None or not isinstance(pid := holder.get("pid"), int):
        raise MeasurementFailedError("there is no daemon")
    return pid


async def _cpu(scene: Scene, deltas: int, *, pause_s: float = 0.0) -> Row:
    await _of_browsers(scene, 200)
    await _of_editor(scene, 200)
    ours, theirs = await alternate(
        scene.plan.rounds,
        lambda: _of_browsers(scene, deltas, pause_s=pause_s),
        lambda: _of_editor(scene, deltas, pause_s=pause_s),
    )
    pace = f", one each {pause_s * 1000:g} ms," if pause_s else ""
    return Row(
        what=f"{deltas:,} deltas{pace} to {STREAMS} streams: CPU of `tiller web` and daemon",
        unit="ms",
        ours=tuple(sum(one) * 1000 for one in ours),
        peer=Peer(
            name="one LSP subscriber: CPU of shim and daemon",
            samples=tuple(sum(one) * 1000 for one in theirs),
        ),
        bar=Bar(of="ratio", at_most=MAX_CPU_RATIO),
        note=f"of it the front end: {_front(ours)}, of the editor's: {_front(theirs)}",
    )


def _front(samples: Sequence[tuple[float, float]]) -> str:
    return f"{sorted(one[0] for one in samples)[len(samples) // 2] * 1000:.0f} ms"


async def _of_browsers(scene: Scene, deltas: int, *, pause_s: float = 0.0) -> tuple[float, float]:
    lab, site, script = scene.lab, scene.site, scene.script
    session = (await site.ask(script, "agent/session/open", session="new"))["session"]
    streams = [await site.connect(session) for _ in range(STREAMS)]
    lab.provider.script([answer_of(deltas, delta_delay_s=pause_s)])
    daemon = _daemon(lab)
    front, back = cpu_s(site.pid), cpu_s(daemon)
    content = [{"type": "text", "text": "go on"}]
    await site.ask(script, "agent/prompt", session=session, content=content)
    async with asyncio.TaskGroup() as tasks:
        for reader, _ in streams:
            tasks.create_task(_to_the_end(reader))
    spent = cpu_s(site.pid) - front, cpu_s(daemon) - back
    for _, writer in streams:
        writer.close()
    return spent


async def _to_the_end(reader: asyncio.StreamReader) -> None:
    """Read until the run has ended, at as little cost as can be."""
    kept = b""
    while b'"run.ended"' not in kept:
        data = await reader.read(1 << 18)
        if not data:
            raise MeasurementFailedError("a stream ended before its run")
        kept = kept[-16:] + data


async def _of_editor(scene: Scene, deltas: int, *, pause_s: float = 0.0) -> tuple[float, float]:
    lab, client = scene.lab, scene.client
    await client.open_session()
    stream = await client.follow()
    lab.provider.script([answer_of(deltas, delta_delay_s=pause_s)])
    daemon = _daemon(lab)
    front, back = cpu_s(client.pid), cpu_s(daemon)
    await ended(stream, await client.prompt())
    spent = cpu_s(client.pid) - front, cpu_s(daemon) - back
    await stream.unsubscribe()
    return spent


async def _suspended(scene: Scene) -> Row:
    """Time a run at one reader, with another that has stopped reading, and without."""
    plan, lab, site, script = scene.plan, scene.lab, scene.site, scene.script

    async def run(*, is_suspended: bool) -> float:
        session = (await site.ask(script, "agent/session/open", session="new"))["session"]
        stopped = await site.connect(session) if is_suspended else None
        reader, writer = await site.connect(session)
        lab.provider.script([answer_of(max(plan.deltas))])
        began = time.monotonic()
        content = [{"type": "text", "text": "go on"}]
        await site.ask(script, "agent/prompt", session=session, content=content)
        await _to_the_end(reader)
        took_ms = (time.monotonic() - began) * 1000
        for one in (writer, *(stopped or ())[1:]):
            one.close()
        return took_ms

    ours, without = await alternate(
        plan.rounds, lambda: run(is_suspended=True), lambda: run(is_suspended=False)
    )
    return Row(
        what=f"{max(plan.deltas):,} deltas to a reader beside one that has stopped",
        unit="ms",
        ours=tuple(ours),
        peer=Peer(name="alone", samples=tuple(without)),
        bar=Bar(of="ratio", at_most=MAX_DELAY_RATIO),
    )


async def _latency(scene: Scene) -> list[Row]:
    """Time an editor while another session floods, with and without browsers that follow that."""
    client = scene.client

    async def request() -> float:
        return (await client.timed("agent/session/list", {"limit": 5})).took_s * 1000

    requests = await _beside_streams(scene, request)
    await client.open_session()
    stream = await client.follow()

    async def prompt() -> float:
        taken = await client.prompt()
        await ended(stream, taken)
        return taken.took_s * 1000

    prompts = await _beside_streams(scene, prompt)
    await stream.unsubscribe()
    return [
        _beside_row("request of an editor", requests, note="agent/session/list"),
        _beside_row("prompt of an editor acknowledged", prompts, note="in a session of its own"),
    ]


async def _beside_streams(
    scene: Scene, once: Callable[[], Awaitable[float]]
) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    """Return times beside a flood of streams, beside one without, and beside nothing."""
    quiet: list[float] = []
    flooded: list[float] = []
    followed: list[float] = []

    async def measured(into: list[float], *, streams: int | None) -> None:
        flood = nullcontext() if streams is None else _flood(scene, streams=streams)
        scene.lab.provider.script([FLOODING, answer_of(3, repeat=FOREVER)])
        async with flood:
            for _ in range(scene.plan.prompts):
                into.append(await once())
                await asyncio.sleep(0.005)

    await alternate_all(
        scene.plan.rounds,
        [
            lambda: measured(quiet, streams=None),
            lambda: measured(flooded, streams=0),
            lambda: measured(followed, streams=STREAMS),
        ],
    )
    return followed, flooded, quiet


def _beside_row(
    what: str, samples: tuple[Sequence[float], Sequence[float], Sequence[float]], *, note: str
) -> Row:
    followed, flooded, quiet = samples
    return Row(
        what=f"{what}, while a run floods {STREAMS} streams of `tiller web`",
        unit="ms",
        ours=tuple(followed),
        peer=Peer(name="while the same run is followed by nobody", samples=tuple(flooded)),
        others=(Peer(name="while nothing runs", samples=tuple(quiet)),),
        bar=Bar(of="ratio", at_most=MAX_BESIDE_RATIO),
        note=f"{note}, through shim and daemon",
    )


@asynccontextmanager
async def _flood(scene: Scene, *, streams: int) -> AsyncGenerator[None]:
    """Keep one run of a browser's session going, at the pace of a fast model."""
    site, script = scene.site, scene.script
    session = (await site.ask(script, "agent/session/open", session="new"))["session"]
    open_streams = [await site.connect(session) for _ in range(streams)]
    content = [{"type": "text", "text": FLOOD}]
    await site.ask(script, "agent/prompt", session=session, content=content)
    async with asyncio.TaskGroup() as tasks:
        reading = [tasks.create_task(_read(reader)) for reader, _ in open_streams]
        try:
            yield
        finally:
            await site.ask(script, "agent/run/cancel", session=session, scope="session")
            for task in reading:
                task.cancel()
            for _, writer in open_streams:
                writer.close()


async def _read(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 18):
        pass


async def _page(plan: Plan, lab: Lab) -> list[Row]:
    """Measure the page in Chromium with its CPU slowed down to a quarter."""
    needed = (NODE, BROWSER, CLIENT / "node_modules" / "playwright-core")
    missing = [one.name for one in needed if not one.exists()]
    paints: Sequence[float] = ()
    sizes: Sequence[float] = ()
    note = f"not measured, as these are missing: {', '.join(missing)} (make web-page)"
    if not missing:
        async with _served(lab) as site:
            figures = await _painted(lab, site, plan.starts)
        paints, sizes, note = figures["paint"], figures["kb"], "first contentful paint, by CDP"
    return [
        Row(
            what="page of `tiller web` on loopback, first paint, CPU throttled 4 times",
            unit="ms",
            ours=tuple(paints),
            bar=Bar(of="median", at_most=MAX_PAINT_MS),
            note=note,
        ),
        Row(
            what="files of the page of `tiller web`, as sent",
            unit="kB",
            ours=tuple(sizes),
            bar=Bar(of="median", at_most=MAX_PAGE_KB),
        ),
    ]


async def _painted(lab: Lab, site: Site, starts: int) -> Any:
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(PAINT), site.url, str(starts), str(BROWSER),
        env=lab.shop.environ, cwd=CLIENT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    if process.returncode != 0:
        raise MeasurementFailedError("the page could not be measured; see above")
    return json.loads(out)


BENCHMARK = Benchmark(name="web", title="`tiller web`", run=measure)
