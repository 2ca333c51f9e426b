"""Hostile streams, delivered whole, byte by byte and cut anywhere: to a bare connection, and to the real server."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.harness.isolation import TillerDirs
from tests.support.harness.sizes import at_size, is_campaign
from tests.support.hostile.hostile_streams import (
    PROBE,
    Line,
    Stream,
    deliveries,
    initialize,
    message,
    requests_in,
    run,
    streams,
)
from tests.support.lsp.echo_server import make_connection
from tiller_server.lsp.app import App
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.runtime import Runtime
from tiller_server.lsp.transport.framing import frame
from tiller_server.process.config import ServerConfig

pytestmark = pytest.mark.timeout(600 if is_campaign() else 60)
Make = Callable[[], LspConnection]
MUTATED = at_size(ci=1_000, campaign=50_000)
AT_ONCE = 50


@asynccontextmanager
async def bare() -> AsyncGenerator[tuple[Make, str]]:
    """Make connections that do little more than answer; give the method that probes them."""
    yield make_connection, "agent/echo"


@asynccontextmanager
async def real(dirs: TillerDirs) -> AsyncGenerator[tuple[Make, str]]:
    """Make connections of one real server."""
    config = ServerConfig(env={**dirs.variables(), "PATH": "/usr/bin:/bin"}, home=dirs.home)
    async with Runtime(config) as runtime:
        yield lambda: App(runtime).connection, "agent/status"


@pytest.mark.parametrize("stream", streams())
async def test_a_bare_connection_gives_each_stream_its_verdict(stream: Stream) -> None:
    async with bare() as (make, probe):
        await verdicts(stream, make, probe)


@pytest.mark.parametrize("stream", streams())
async def test_the_server_gives_each_stream_its_verdict(
    stream: Stream, tiller_dirs: TillerDirs
) -> None:
    async with real(tiller_dirs) as (make, probe):
        await verdicts(stream, make, probe)


async def verdicts(stream: Stream, make: Make, probe: str) -> None:
    for way, pieces in deliveries(stream):
        before = [] if stream.is_fresh else [initialize("init"), message(method="initialized")]
        behind = [initialize("late")] if stream.is_fresh else []
        behind.append(message(id=PROBE, method=probe, params={}))
        is_last = stream.connection == "must_close"
        line = Line([*before, *pieces] if is_last else [*before, *pieces, *behind])
        if stream.ends:
            line.over.set()
        stood, answered = await beside(make, probe, run(make(), line))
        assert answered, way
        if is_last:
            assert not stood, way
        elif not stood:
            assert stream.connection == "may_close", way
        else:
            check(stream, line, way)


async def beside(make: Make, probe: str, work: Coroutine[Any, Any, bool]) -> tuple[bool, bool]:
    """Do the work while another connection asks; give what it came to, and whether the other was answered."""
    other = Line([initialize("init"), message(id=PROBE, method=probe, params={})])
    async with asyncio.TaskGroup() as tasks:
        first, second = tasks.create_task(work), tasks.create_task(run(make(), other))
    return first.result(), second.result()


def check(stream: Stream, line: Line, way: str) -> None:
    own = [
        one for one in line.received if one.get("id") not in {"init", "late", PROBE} and "id" in one
    ]
    codes = [one["error"]["code"] for one in own if "error" in one and "method" not in one]
    if stream.reply is not None:
        assert codes == [stream.reply], way
        return
    ids = requests_in(stream.data)
    for request_id in ids:
        assert len(line.answers(request_id)) == ids.count(request_id), way


SEEDS: tuple[dict[str, Any], ...] = (
    {"method": "agent/echo", "params": {"a": [1, 2.5, None, "x"]}},
    {"method": "agent/fail", "params": {}},
    {"method": "agent/session/open", "params": {"session": "s"}},
    {"method": "textDocument/hover", "params": {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}},
    {"method": "workspace/executeCommand", "params": {"command": "repeat", "arguments": [1]}},
    {"method": "$/cancelRequest", "params": {"id": 1}},
    {"method": "shutdownx"},
    {"method": "initialize", "params": {"capabilities": {}}},
)  # fmt: skip
# Copies: what is drawn is changed afterwards.
ODD = st.sampled_from(
    [None, True, -1, 2**31, 10**31, 1.5, "", "\x00", "\ud800", "é" * 9, [], {}, [[]], {"": {}}]
).map(deepcopy)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Draw a message that was one once: members exchanged, dropped or added, or bytes overwritten."""
    whole: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": draw(st.integers(1, 10**6) | st.text(max_size=4)),
    }
    whole |= json.loads(json.dumps(draw(st.sampled_from(SEEDS))))
    for _ in range(draw(st.integers(0, 3))):
        place = whole
        while True:
            name = draw(st.sampled_from([*place, "extra"]))
            inner = place.get(name)
            if isinstance(inner, dict) and inner and draw(st.booleans()):
                place = inner
                continue
            break
        if draw(st.booleans()):
            place[name] = draw(ODD)
        else:
            _ = place.pop(name, None)
    body = bytearray(json.dumps(whole).encode())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 4]))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body)


def due(body: bytes) -> Any:
    """Give the id under which an answer is due; None: any error will do, or none."""
    try:
        one = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(one, dict) or "method" not in one:
        return None
    given_id = one.get("id")
    if isinstance(given_id, bool) or not isinstance(given_id, int | str):
        return None
    usable = isinstance(given_id, int) or not any("\ud800" <= c <= "\udfff" for c in given_id)
    return given_id if usable else None


@given(st.lists(changed(), min_size=AT_ONCE, max_size=AT_ONCE))
@settings(
    max_examples=MUTATED // AT_ONCE,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
def test_changed_messages_are_answered_and_nothing_falls(bodies: list[bytes]) -> None:
    async def talk() -> None:
        # A cancel may take an answer's result, never the answer.
        probe = message(id=PROBE, method="agent/echo", params={})
        line = Line([initialize("init"), message(method="initialized"), *map(frame, bodies), probe])
        assert await run(make_connection(), line)
        ids = [request_id for body in bodies if (request_id := due(body)) is not None]
        unanswered = [one for one in ids if not line.answers(one)]
        assert unanswered == []

    asyncio.run(talk())
