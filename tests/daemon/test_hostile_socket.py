"""Hostile streams at the daemon's socket, delivered whole, byte by byte and cut anywhere, beside a client that works."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tests.support.clients.daemons import daemon_here, editor, hello
from tests.support.clients.server import Ground
from tests.support.harness.sizes import is_campaign
from tests.support.hostile.hostile_streams import (
    PROBE,
    WAIT_S,
    Stream,
    deliveries,
    initialize,
    message,
    requests_in,
    streams,
)
from tiller_server.daemon import paths
from tiller_server.lsp.transport.framing import FrameReader

pytestmark = [pytest.mark.timeout(600 if is_campaign() else 60)]

HELLOS = {
    "http": b"GET /agent HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n",
    "a frame": initialize("init"),
    "another's token": b'{"v":1,"token":"guessed","cwd":"/","pid":1,"version":"0.1.0","env":{}}\n',
    "no token": b'{"v":1}\n',
    "a list": b"[1]\n",
    "half": b'{"v":1,"tok',
    "deep": b"{" + b'"a":{' * 20_000 + b"\n",
    "bytes": bytes(range(256)) * 20,
    "endless": b"{" + b"x" * 5_000_000,
}


class Knocker:
    """A client that sends exactly these bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received: list[dict[str, Any]] = []

    async def say(self, pieces: Sequence[bytes]) -> None:
        with suppress(ConnectionError):
            for piece in pieces:
                self._writer.write(piece)
                await self._writer.drain()

    def hang_up(self) -> None:
        with suppress(OSError):
            self._writer.write_eof()

    async def heard(self, *, until: str | None) -> bool:
        """Read until an id is answered; no when the connection ends first."""
        frames = FrameReader()
        with suppress(ConnectionError):
            while data := await self._reader.read(65_536):
                frames.feed(data)
                while (body := frames.take()) is not None:
                    self.received.append(json.loads(body))
                if until is not None and self.answers(until):
                    return True
        return False

    def answers(self, request_id: Any) -> list[dict[str, Any]]:
        return [
            one
            for one in self.received
            if "method" not in one
            and one.get("id") == request_id
            and type(one["id"]) is type(request_id)
        ]

    def leave(self) -> None:
        self._writer.transport.abort()


async def knocks(env: Mapping[str, str]) -> Knocker:
    return Knocker(*await asyncio.open_unix_connection(paths.socket_path(env), limit=2**24))


@pytest.mark.parametrize("stream", streams())
async def test_each_stream_gets_its_verdict_and_whoever_works_beside_it_goes_on(
    stream: Stream, ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    async with daemon_here(ground.env), await editor(ground.env, ground.root) as beside:
        await beside.request("agent/session/open", {})
        for way, pieces in deliveries(stream):
            caplog.clear()
            async with asyncio.timeout(WAIT_S):
                await verdict(stream, ground.env, way, pieces)
                assert "daemon" in await beside.request("agent/status", {}), way
            crashes = [one.getMessage() for one in caplog.records if one.exc_info]
            assert crashes == [], way
            if stream.connection == "must_close":
                said = [one for one in caplog.records if one.levelno >= logging.WARNING]
                assert len(said) <= 1, (way, [one.getMessage() for one in said])


async def verdict(stream: Stream, env: Mapping[str, str], way: str, pieces: list[bytes]) -> None:
    is_last = stream.connection == "must_close"
    before = [] if stream.is_fresh else [initialize("init"), message(method="initialized")]
    behind = [initialize("late")] if stream.is_fresh else []
    behind.append(message(id=PROBE, method="agent/status", params={}))
    knocker = await knocks(env)
    async with asyncio.TaskGroup() as tasks:
        said = tasks.create_task(
            knocker.say([hello(env), *before, *pieces, *([] if is_last else behind)])
        )
        if stream.ends:
            await asyncio.wait([said])
            knocker.hang_up()
        stood = await knocker.heard(until=None if is_last else PROBE)
        said.cancel()
    knocker.leave()
    if not is_last and not stood:
        assert stream.connection == "may_close", way
    elif not is_last:
        check(stream, knocker, way)


def check(stream: Stream, knocker: Knocker, way: str) -> None:
    ours = {"init", "late", PROBE}
    own = [one for one in knocker.received if "id" in one and one["id"] not in ours]
    codes = [one["error"]["code"] for one in own if "error" in one and "method" not in one]
    if stream.reply is not None:
        assert codes == [stream.reply], way
        return
    ids = requests_in(stream.data)
    for request_id in ids:
        assert len(knocker.answers(request_id)) == ids.count(request_id), way


@pytest.mark.parametrize("said", HELLOS.values(), ids=list(HELLOS))
async def test_whoever_knows_no_hello_is_sent_away_with_one_line_in_the_log(
    said: bytes, ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    async with daemon_here(ground.env), await editor(ground.env, ground.root) as beside:
        caplog.clear()
        knocker = await knocks(ground.env)
        async with asyncio.timeout(WAIT_S):
            await knocker.say([said])
            knocker.hang_up()
            with suppress(Exception):  # a refusal is a line and no frame
                await knocker.heard(until=None)
            assert "daemon" in await beside.request("agent/status", {})
        knocker.leave()
        told = [
            one for one in caplog.records if one.levelno >= logging.INFO and "daemon" in one.name
        ]
        assert len(told) <= 1, [one.getMessage() for one in told]
        assert not [one for one in caplog.records if one.exc_info]
