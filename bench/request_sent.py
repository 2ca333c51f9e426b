"""How long it takes from a prompt to the model's request on the wire, without a history and with a long one."""

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_core.kernel import SessionId, SystemClock, uuid7
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import Header
from bench.client import Client
from bench.kit import Benchmark, Peer, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from bench.raw_exchange import RawSocket
from tests.support.session.entries import assistant, chain, user

CHARS = 200
FOREVER = -1
RAW = "the same bytes over a socket"


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Prompt in fresh sessions, in a short one, and in copies of one with a long history."""
    async with shop.lab() as lab, lab.tiller() as client:
        lab.provider.script([answer_of(3, repeat=FOREVER)])
        await _timed(lab, client)
        rows = [
            await _fresh(plan, lab, client),
            await _later(plan, lab, client),
        ]
        return [*rows, *await _long(plan, lab, client)]


async def _fresh(plan: Plan, lab: Lab, client: Client) -> Row:
    async def one() -> float:
        await client.open_session()
        return await _timed(lab, client)

    return await _row("prompt to request, empty history, new session", plan, lab, one)


async def _later(plan: Plan, lab: Lab, client: Client) -> Row:
    await client.open_session()
    await _timed(lab, client)
    return await _row(
        "prompt to request, a few short turns", plan, lab, lambda: _timed(lab, client)
    )


async def _long(plan: Plan, lab: Lab, client: Client) -> list[Row]:
    opened: list[float] = []
    first: list[float] = []
    read: list[float] = []
    for _ in range(plan.rounds):
        session, path = await write_history(lab, plan.history)
        opened.append((await client.open_session(session)).took_s * 1000)
        read.append(_decoded_ms(path))
        first.append(await _timed(lab, client))
    messages = f"{plan.history:,} messages of {CHARS} characters"
    return [
        Row(
            what=f"session of {messages} opened",
            unit="ms",
            ours=tuple(opened),
            peer=Peer(name="read the file, json.loads a line", samples=tuple(read)),
        ),
        Row(what=f"first prompt to request, {messages}", unit="ms", ours=tuple(first)),
        await _row(f"prompt to request, {messages}", plan, lab, lambda: _timed(lab, client)),
    ]


async def _row(what: str, plan: Plan, lab: Lab, one: Callable[[], Awaitable[float]]) -> Row:
    ours: list[float] = []
    raw: list[float] = []
    sent_bytes = 0
    with RawSocket(lab.provider.origin) as plain:
        for _ in range(plan.rounds * 3):
            ours.append(await one())
            asked = lab.provider.log()[-1]
            sent_bytes = len(json.dumps(asked["body"], separators=(",", ":")))
            exchange = plain.post(asked["path"], asked["body"])
            raw.append((_arrived(lab) - exchange.sent) * 1000)
    return Row(
        what=what,
        unit="ms",
        ours=tuple(ours),
        peer=Peer(name=RAW, samples=tuple(raw)),
        note=f"request of {sent_bytes / 1000:.1f} kB",
    )


async def _timed(lab: Lab, client: Client) -> float:
    """Prompt, let the run end, and give the milliseconds until the provider had the request."""
    taken = await client.prompt(wait=True)
    if taken.result["status"] != "completed":
        message = f"a run ended {taken.result['status']!r}: {taken.result.get('error')}"
        raise RuntimeError(message)
    return (_arrived(lab) - taken.sent) * 1000


def _arrived(lab: Lab) -> float:
    # The provider's monotonic clock is ours: it belongs to the machine.
    return float(lab.provider.log(bodies="without")[-1]["at"])


def _decoded_ms(path: Path) -> float:
    began = time.monotonic()
    for line in path.read_bytes().splitlines():
        json.loads(line)
    return (time.monotonic() - began) * 1000


async def write_history(lab: Lab, messages: int) -> tuple[SessionId, Path]:
    """Write a session of user and assistant messages, the way the product writes one."""
    clock = SystemClock()
    header = Header(
        id=SessionId(uuid7(clock.now_ms())), at_ms=clock.now_ms(), cwd=str(lab.workspace)
    )
    log = await JsonlStore(lab.dirs.data / "sessions", clock).create(header)
    said = (
        user(history_text(number), at_ms=header.at_ms)
        if number % 2 == 0
        else assistant(history_text(number), at_ms=header.at_ms)
        for number in range(messages)
    )
    try:
        await log.append(chain(*said))
    finally:
        await log.close()
    if log.location is None:
        raise RuntimeError("the session was not written to a file")
    return header.id, log.location


def history_text(number: int) -> str:
    """Return the text of one message of a long history."""
    return f"{number} {'lorem ipsum ' * CHARS}"[:CHARS]


BENCHMARK = Benchmark(name="request-sent", title="Prompt to model request", run=measure)
