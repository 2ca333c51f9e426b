"""The corpus of hostile streams, and ways to deliver one: whole, byte by byte, cut anywhere."""

import asyncio
import base64
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.support.harness.shared import SHARED_ABSENT, SHARED_ROOT
from tests.support.harness.sizes import is_campaign
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.framing import FrameReader, frame

WAIT_S = 15.0
CUTS = 3
FINE_BYTES = 2_048
"""Of a long stream the first and last so many come byte by byte; a campaign sends all of them so."""
COARSE_BYTES = 997
CORPUS = SHARED_ROOT / "data" / "hostile" / "lsp.jsonl"
PROBE = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A row of the corpus."""

    name: str
    is_fresh: bool
    data: bytes
    connection: str
    """`stays`, `may_close` or `must_close`."""
    reply: int | None
    """The code of the one error that is due; None: whatever fits."""

    @property
    def ends(self) -> bool:
        """Whether the client hangs up behind it."""
        return "eof" in self.name or "half-close" in self.name


def streams() -> list[Any]:
    """Give the corpus as parameters of a test; one that is skipped where it is absent."""
    if not CORPUS.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=SHARED_ABSENT))]
    rows = map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    return [pytest.param(_stream(row), id=f"{row['id']}-{row['name']}") for row in rows]


def _stream(row: Any) -> Stream:
    pieces = [
        base64.b64decode(one.get("b64", one.get("repeat_b64"))) * one.get("n", 1)
        for one in row["chunks"]
    ]
    return Stream(
        name=f"{row['id']}-{row['name']}",
        is_fresh=row["state"] == "fresh",
        data=b"".join(pieces),
        connection=row["expect"]["connection"],
        reply=row["expect"]["reply"],
    )


def deliveries(stream: Stream) -> Iterator[tuple[str, list[bytes]]]:
    """Give every way in which a stream is delivered."""
    data = stream.data
    yield "whole", [data]
    yield "byte by byte", list(_bytewise(data))
    dice = random.Random(stream.name)  # noqa: S311 - the same cuts each time
    for number in range(CUTS):
        at = sorted(dice.randrange(len(data) + 1) for _ in range(3))
        ends = [0, *at, len(data)]
        yield f"cut {number}", [data[a:b] for a, b in pairwise(ends) if a < b]


def _bytewise(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        is_fine = is_campaign() or at < FINE_BYTES or at >= len(data) - FINE_BYTES
        step = 1 if is_fine else min(COARSE_BYTES, len(data) - FINE_BYTES - at)
        yield data[at : at + step]
        at += step


def message(**members: Any) -> bytes:
    """Make a framed message."""
    return frame(json.dumps({"jsonrpc": "2.0", **members}).encode())


def initialize(request_id: str) -> bytes:
    """Make what opens a connection."""
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    return message(id=request_id, method="initialize", params=params)


class Line:
    """Both ends of a connection in one process: gives exactly these pieces, keeps what comes back."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(reversed(pieces))
        self._frames = FrameReader()
        self.over = asyncio.Event()
        self.is_closed = False
        self.received: list[dict[str, Any]] = []
        self.news = asyncio.Event()

    async def read(self, n: int) -> bytes:
        """Give the next piece; then nothing, until the client hangs up."""
        if not self._pieces:
            await self.over.wait()
            return b""
        piece = self._pieces.pop()
        if len(piece) > n:
            self._pieces.append(piece[n:])
        return piece[:n]

    def write(self, data: bytes) -> None:
        """Take what the server says."""
        self._frames.feed(data)
        while (body := self._frames.take()) is not None:
            self.received.append(json.loads(body))
        self.news.set()

    async def drain(self) -> None:
        """Wait for nothing."""

    def close(self) -> None:
        """Close nothing."""

    async def wait_closed(self) -> None:
        """Wait for nothing."""

    def answers(self, request_id: Any) -> list[dict[str, Any]]:
        """Give the answers under an id; 1, "1" and true are three."""
        return [
            one
            for one in self.received
            if "method" not in one
            and one.get("id") == request_id
            and type(one["id"]) is type(request_id)
        ]


async def run(connection: LspConnection, line: Line, *, until: Any = PROBE) -> bool:
    """Serve until an id is answered, or until the connection ends by itself; say whether it still stood."""
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(_serve(connection, line))
        try:
            while not line.is_closed and not line.answers(until):
                line.news.clear()
                await line.news.wait()
        finally:
            line.over.set()
            connection.close()
    return bool(line.answers(until))


async def _serve(connection: LspConnection, line: Line) -> None:
    try:
        await connection.serve(line, line)
    finally:
        line.is_closed = True
        line.news.set()


def requests_in(data: bytes) -> list[Any]:
    """Give the ids of the well-formed requests in a stream."""
    ids: list[Any] = []
    for piece in data.split(b"\r\n\r\n")[1:]:
        try:
            one = json.loads(piece.partition(b"Content-Length")[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict) and isinstance(one.get("id"), int | str) and "method" in one:
            ids.append(one["id"])
    return ids
