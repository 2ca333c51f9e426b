"""The corpus of hostile input, against one process that serves a connection for each case."""

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.shared import SHARED_ABSENT, SHARED_ROOT
from tests.support.lsp.wire_peer import Peer, PeerGone

ROOT = Path(__file__).resolve().parents[3]
CORPUS = SHARED_ROOT / "data" / "hostile" / "lsp.jsonl"


def load() -> list[Any]:
    if not CORPUS.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=SHARED_ABSENT))]
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [pytest.param(case, id=f"{case['id']}-{case['name']}") for case in cases]


@pytest.fixture(scope="module")
def address(_short_base: Path) -> Iterator[str]:
    path = _short_base / "hostile.sock"
    argv = [sys.executable, "-m", "tests.support.lsp.echo_server", "--socket", str(path)]
    child = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    try:
        assert child.stderr.readline() == b"listening\n"
        yield str(path)
        assert child.poll() is None, "the process did not survive the corpus"
    finally:
        child.kill()
        child.communicate()


@asynccontextmanager
async def connected(address: str) -> AsyncGenerator[Peer, None]:
    reader, writer = await asyncio.open_unix_connection(address)
    try:
        yield Peer(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def probe(peer: Peer, *, is_fresh: bool) -> list[dict[str, Any]]:
    """Use the connection as an editor would; give what came before."""
    if is_fresh:
        peer.send(id="probe-init", method="initialize", params={"capabilities": {}})
    peer.send(id="probe", method="agent/echo", params={"probe": 1})
    seen: list[dict[str, Any]] = []
    while (message := await peer.read()).get("id") != "probe":
        seen.append(message)
    assert message["result"] == {"probe": 1}
    return seen


def requests_in(data: bytes) -> list[Any]:
    """Ids of the well-formed requests in a case."""
    pieces = data.split(b"\r\n\r\n")
    ids: list[Any] = []
    for piece in pieces[1:]:
        try:
            message = json.loads(piece.partition(b"Content-Length")[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and "method" in message and "id" in message:
            ids.append(message["id"])
    return ids


@pytest.mark.parametrize("case", load())
async def test_hostile_input_gets_its_verdict_and_the_process_lives(
    case: dict[str, Any], address: str
) -> None:
    pieces = [
        base64.b64decode(c.get("b64", c.get("repeat_b64"))) * c.get("n", 1) for c in case["chunks"]
    ]
    is_fresh = case["state"] == "fresh"
    expected = case["expect"]
    async with connected(address) as peer:
        if not is_fresh:
            await peer.initialize()
        for piece in pieces:
            peer.send_raw(piece)
        if expected["connection"] == "must_close":
            if case["name"].startswith("half-close"):
                peer.writer.write_eof()
            await peer.read_to_end()
        else:
            try:
                seen = await probe(peer, is_fresh=is_fresh)
            except PeerGone:
                assert expected["connection"] == "may_close"
            else:
                check_replies(seen, expected["reply"], b"".join(pieces))
    async with connected(address) as bystander:
        await bystander.initialize()
        await probe(bystander, is_fresh=False)


def check_replies(seen: list[dict[str, Any]], code: int | None, sent: bytes) -> None:
    codes = [message["error"]["code"] for message in seen if "error" in message]
    if code is not None:
        assert codes == [code]
        return
    answered = [message["id"] for message in seen]
    for request_id in requests_in(sent):
        if isinstance(request_id, int | str):
            assert answered.count(request_id) == requests_in(sent).count(request_id)
