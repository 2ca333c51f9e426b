"""What a turn with one tool call costs beyond the provider's own time: fifty in a row."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.client import Client, ended
from bench.cost import cpu_s
from bench.kit import Benchmark, Peer, Plan, Row
from bench.lab import Lab, Workshop
from bench.raw_exchange import RawSocket, encoded

SMALL_FILE = "".join(f"line {number} of a small file\n" for number in range(40))
RAW = "the same requests over a socket"
_VARIED: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "read": lambda number: {"limit": 500 + number},
    "bash": lambda number: {"command": f"true {number}"},
}
"""By tool, what makes one call different from the others and costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One run of many tool calls."""

    turn_ms: float
    raw_ms: float
    """A turn of the same requests, sent by a plain socket: the provider's own time."""
    cpu_ms: float
    ok: int
    """Calls whose result was no error."""


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Let the model read a small file fifty times, then run `true` fifty times."""
    async with shop.lab() as lab, lab.tiller() as client:
        (lab.workspace / "small.txt").write_text(SMALL_FILE, encoding="utf-8")
        reads = await _loops(plan, lab, client, "read", {"path": "small.txt"})
        runs = await _loops(plan, lab, client, "bash", {"command": "true"})
        shell = [await _shell_ms(lab) for _ in range(plan.rounds * 5)]
    starting = Peer(name="bash -c true, started and awaited", samples=tuple(shell))
    return [
        *_rows("read of a small file", plan, reads),
        *_rows("bash `true`", plan, runs, net_of=starting),
    ]


def _rows(what: str, plan: Plan, loops: list[Loop], *, net_of: Peer | None = None) -> list[Row]:
    ok = sum(loop.ok for loop in loops)
    return [
        Row(
            what=f"{what}: a turn of {plan.calls}",
            unit="ms",
            ours=tuple(loop.turn_ms for loop in loops),
            peer=Peer(name=RAW, samples=tuple(loop.raw_ms for loop in loops)),
            note=f"{ok} of {len(loops) * plan.calls} calls succeeded",
        ),
        Row(
            what=f"{what}: a turn, net of the provider",
            unit="ms",
            ours=tuple(loop.turn_ms - loop.raw_ms for loop in loops),
            peer=net_of,
            note=f"CPU of the server {median(loop.cpu_ms for loop in loops):.1f} ms a turn",
        ),
    ]


async def _loops(
    plan: Plan, lab: Lab, client: Client, tool: str, arguments: dict[str, Any]
) -> list[Loop]:
    await _loop(lab, client, _script(5, tool, arguments))
    script = _script(plan.calls, tool, arguments)
    return [await _loop(lab, client, script) for _ in range(plan.rounds)]


def _script(calls: int, tool: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an answer for each call; no two calls are the same, because a run that repeats one is stopped."""
    usage = {"input": 10, "output": 10}
    turns = [
        {"tool_calls": [{"name": tool, "arguments": {**arguments, **varied}}], "usage": usage}
        for varied in map(_VARIED[tool], range(calls))
    ]
    return [*turns, {"text": "done", "usage": usage}]


async def _loop(lab: Lab, client: Client, script: list[dict[str, Any]]) -> Loop:
    await client.open_session()
    stream = await client.follow()
    known = len(lab.provider.log(bodies="without"))
    lab.provider.script(script)
    cpu = cpu_s(client.pid)
    taken = await client.prompt()
    await ended(stream, taken)
    took_s = time.monotonic() - taken.sent
    cpu = cpu_s(client.pid) - cpu
    ok = sum(event["status"] == "ok" for event in stream.of("tool.ended"))
    await stream.unsubscribe()
    turns = len(script)
    return Loop(
        turn_ms=took_s * 1000 / turns,
        raw_ms=_raw_s(lab, script, known) * 1000 / turns,
        cpu_ms=cpu * 1000 / turns,
        ok=ok,
    )


def _raw_s(lab: Lab, script: list[dict[str, Any]], known: int) -> float:
    """Send what the run sent once more, over a socket that is open already."""
    bodies = [encoded(one["path"], one["body"]) for one in lab.provider.log(since=known)]
    lab.provider.script(script)
    with RawSocket(lab.provider.origin) as plain:
        began = time.monotonic()
        for body in bodies:
            plain.exchange(body)
        return time.monotonic() - began


async def _shell_ms(lab: Lab) -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", "true", env=lab.env, cwd=lab.workspace, start_new_session=True
    )
    await process.wait()
    return (time.monotonic() - began) * 1000


BENCHMARK = Benchmark(name="tool-loop", title="Fifty tool calls", run=measure)
