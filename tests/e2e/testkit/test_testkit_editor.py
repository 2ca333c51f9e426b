"""The scripted editor keeps its promises: it speaks, edits, subscribes and misbehaves as it is told."""

import asyncio
import subprocess
import sys
from pathlib import Path
from socket import socket, socketpair
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.support.lsp.lsp_behaviours import (
    TYPED,
    AppliesOther,
    EditBehaviour,
    Honest,
    LikeEglot,
    LikeHelix,
    LikeNeovim,
    NeverAnswers,
    PartlyApplies,
    Refuses,
    RefusesStaleVersions,
    SaysAppliedButDidNothing,
)
from tests.support.lsp.lsp_client import ClientError, RawClient
from tests.support.lsp.lsp_profiles import MINIMAL, NEOVIM_0_11, PANEL, VSCODE, Profile
from tests.support.lsp.lsp_text import (
    Encoding,
    Lines,
    Splice,
    apply_changes,
    apply_edits,
    content_changes,
    spliced,
)

Json = dict[str, Any]

# Sends what it is told: `send` as it stands, `ask` as a request whose answer it gives back.
SERVER = r"""
import json, sys
def read():
    size = 0
    while (line := sys.stdin.buffer.readline()).strip():
        size = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(size)) if size else None
def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
seen, subscribed = [], None
while (message := read()) is not None:
    method, params, id = message.get("method"), message.get("params"), message.get("id")
    if method == "initialize":
        offered = params["capabilities"].get("general", {}).get("positionEncodings", ["utf-16"])
        send(id=id, result={"capabilities": {"positionEncoding": offered[0], "textDocumentSync": 2}})
    elif method == "test/send":
        for one in params["messages"]:
            send(**one)
        send(id=id, result=None)
    elif method == "test/ask":
        send(id="ask", method=params["method"], params=params["params"])
        asked = id
    elif method is None and id == "ask":
        send(id=asked, result={"answer": message, "seen": seen})
    elif method == "agent/subscribe":
        subscribed = id
        for value in params["values"]:
            send(method="$/progress", params={"token": params["partialResultToken"], "value": value})
    elif method == "$/cancelRequest":
        send(id=params["id"], error={"code": -32800, "message": "cancelled"})
    elif method == "test/flood":
        for number in range(params["frames"]):
            send(method="flood", params={"number": number, "pad": "x" * 1000})
        print("flooded", file=sys.stderr, flush=True)
        send(id=id, result=None)
    elif method == "shutdown":
        send(id=id, result=None)
    elif method == "exit":
        sys.exit(0)
    elif id is not None:
        send(id=id, error={"code": -32601, "message": method, "data": {"params": params}})
    else:
        seen.append(message)
"""


async def serve(caps: Profile = VSCODE) -> RawClient:
    client = await RawClient.spawn([sys.executable, "-c", SERVER])
    await client.initialize(caps)
    return client


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Json:
    places = [{"line": line, "character": character} for line, character in (start, end)]
    return {"range": {"start": places[0], "end": places[1]}, "newText": text}


async def test_a_client_speaks_and_the_server_ends_with_its_code() -> None:
    async with await serve() as client:
        with pytest.raises(ClientError) as refused:
            await client.request("agent/nothing", {"type_name": 1})
        assert (refused.value.code, refused.value.data) == (-32601, {"params": {"type_name": 1}})
        await client.shutdown()
        assert await client.exit() == 0


def server_on(sock: socket) -> subprocess.Popen[bytes]:
    with sock:
        file = sock.fileno()
        return subprocess.Popen([sys.executable, "-c", SERVER], stdin=file, stdout=file)


@pytest.mark.parametrize("way", ["socket", "streams"])
async def test_a_client_speaks_over_what_others_opened(way: str) -> None:
    ours, theirs = socketpair()
    with server_on(theirs) as process:
        if way == "socket":
            async with await RawClient.over_socket(ours) as client:
                await client.initialize()
                await client.shutdown()
        else:
            reader, writer = await asyncio.open_connection(sock=ours)
            async with RawClient.over(reader, writer) as client:
                await client.initialize()
                client.link.close_input()
                with pytest.raises(ConnectionError):
                    await client.wait_method("never")
        assert process.wait(timeout=5) == 0


async def test_what_was_not_declared_is_refused_and_noted() -> None:
    async with await serve(MINIMAL) as client:
        params = {"method": "workspace/applyEdit", "params": {"edit": {}}}
        told = await client.request("test/ask", params)
        assert told["answer"]["error"]["code"] == -32601
        assert [one["method"] for one in client.undeclared] == ["workspace/applyEdit"]


def change(uri: str, version: int, *edits: Json) -> Json:
    return {"textDocument": {"uri": uri, "version": version}, "edits": list(edits)}


A, B = "file:///a.py", "file:///b.py"
ONE, TWO = edit((0, 1), (0, 3), "[1]"), edit((1, 0), (1, 0), "[2]")
YES, NO, FAILED = {"applied": True}, {"applied": False}, None
BEFORE, AFTER, HALF = "a𝄞b\nc\n", "a[1]b\n[2]c\n", "a[1]b\nc\n"


@pytest.mark.parametrize(
    ("behaviour", "version", "answer", "texts"),
    [
        (Honest(), 1, YES, (AFTER, AFTER)),
        (Honest(first="response"), 1, YES, (AFTER, AFTER)),
        (RefusesStaleVersions(), 1, YES, (AFTER, AFTER)),
        (RefusesStaleVersions(), 9, NO, (BEFORE, BEFORE)),
        (SaysAppliedButDidNothing(), 1, YES, (BEFORE, BEFORE)),
        (Refuses(), 1, NO, (BEFORE, BEFORE)),
        (AppliesOther(), 1, YES, (TYPED + AFTER, TYPED + AFTER)),
        (PartlyApplies(edits=1), 1, NO, (HALF, BEFORE)),
        (PartlyApplies(edits=2, claims="applied"), 1, YES, (AFTER, BEFORE)),
        (LikeHelix(), 9, NO, (AFTER, BEFORE)),
        (LikeNeovim(), 9, YES, (AFTER, AFTER)),
        (LikeEglot(), 9, FAILED, (BEFORE, BEFORE)),
    ],
    ids=[
        "honest",
        "response first",
        "current version",
        "stale version",
        "only says so",
        "refuses",
        "user types",
        "one edit",
        "one document",
        "like Helix",
        "like Neovim",
        "like Eglot",
    ],
)
async def test_editors_do_as_they_are_told_and_the_server_can_follow(
    behaviour: EditBehaviour, version: int, answer: Json | None, texts: tuple[str, str]
) -> None:
    async with await serve() as client:
        client.edits = behaviour
        for uri in (A, B):
            client.open(uri, BEFORE)
        changes = [change(A, 1, ONE, TWO), change(B, version, ONE, TWO)]
        params = {"method": "workspace/applyEdit", "params": {"edit": {"documentChanges": changes}}}
        told = await client.request("test/ask", params)
        after = await client.request(
            "test/ask", {"method": "client/registerCapability", "params": {}}
        )
        given_answer = told["answer"].get("result")
        assert (given_answer and {"applied": given_answer["applied"]}) == answer
        assert tuple(client.editor.documents[uri].text for uri in (A, B)) == texts
        assert tuple(followed(after["seen"], uri) for uri in (A, B)) == texts
        told_late = len(told["seen"]) < len(after["seen"])
        assert told_late is (isinstance(behaviour, Honest) and behaviour.first == "response")
        assert client.complaints == []


def followed(seen: list[Json], uri: str) -> str:
    """Give the text of a document as a server knows it from the notifications alone."""
    text = ""
    for message in seen:
        params = message["params"]
        if params.get("textDocument", {}).get("uri") != uri:
            continue
        if message["method"] == "textDocument/didOpen":
            text = params["textDocument"]["text"]
        else:
            text = apply_changes(text, params["contentChanges"], encoding="utf-16")
    return text


async def test_an_unanswered_edit_can_be_answered_late() -> None:
    async with await serve() as client:
        silent = NeverAnswers()
        client.edits = silent
        call = client.call("test/ask", {"method": "workspace/applyEdit", "params": {"edit": {}}})
        await client.wait_method("workspace/applyEdit")
        assert call.message is None
        silent.replies[0]({"applied": True})
        assert (await call.result())["answer"]["result"] == {"applied": True}


async def test_a_panel_checks_preconditions_and_saves(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(BEFORE.encode())
    async with await serve(PANEL) as client:
        document = client.editor.open_file(path)
        pre = [{"uri": document.uri, "version": 1, "sha256": document.sha256}]
        wanted = {"documentChanges": [change(document.uri, 1, ONE, TWO)]}
        params = {"workspaceEdit": wanted, "pre": pre, "save": "ifWasClean"}
        ask_edit = {"method": "agent/edit/apply", "params": params}
        first = await client.request("test/ask", ask_edit)
        second = await client.request("test/ask", ask_edit)
        assert [one["answer"]["result"]["documents"][0]["status"] for one in (first, second)] == [
            "applied",
            "stale",
        ]
        assert path.read_bytes().decode() == AFTER


@pytest.mark.parametrize(
    ("encoding", "characters"), [("utf-8", (1, 5)), ("utf-16", (1, 3)), ("utf-32", (1, 2))]
)
def test_positions_count_as_the_encoding_says(
    encoding: Encoding, characters: tuple[int, int]
) -> None:
    start, end = characters
    assert apply_edits("a𝄞b\r\n", [edit((0, start), (0, end), "x")], encoding=encoding) == "axb\r\n"


@given(
    text=st.text(alphabet="aé世𝄞\r\n", max_size=30),
    pieces=st.lists(st.text(alphabet="x𝄞\n", max_size=3), max_size=4),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32"]),
    data=st.data(),
)
def test_changes_lead_to_the_text_that_the_edits_made(
    text: str, pieces: list[str], encoding: Encoding, data: st.DataObject
) -> None:
    # Between CR and LF there is no position.
    places = [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n"]
    count = 2 * len(pieces)
    cuts = sorted(data.draw(st.lists(st.sampled_from(places), min_size=count, max_size=count)))
    ordered = [Splice(cuts[2 * n], cuts[2 * n + 1], piece) for n, piece in enumerate(pieces)]
    lines = Lines(text, encoding)
    edits = [{"range": lines.range(one.start, one.end), "newText": one.new_text} for one in ordered]
    wanted = spliced(text, ordered)
    assert apply_edits(text, edits, encoding=encoding) == wanted
    changes = content_changes(lines, ordered)
    if "\r" not in text:  # a piece may join a CR with an LF, and then the changes mean other places
        assert apply_changes(text, changes, encoding=encoding) == wanted


def frame(first: int, to: int, *events: Json, epoch: str = "e") -> Json:
    return {"kind": "agent/events", "epoch": epoch, "from": first, "to": to, "events": list(events)}


def event(seq: int, kind: str, **fields: Any) -> Json:
    return {"seq": seq, "at": "2026-01-01T00:00:00.000Z", "type": kind, **fields}


async def test_a_subscription_keeps_events_in_order_and_ends_by_cancelling() -> None:
    values = [
        {"kind": "agent/snapshot", "epoch": "e", "seq": 4, "snapshot": {"state": "idle"}},
        frame(
            5,
            7,
            event(5, "message.started", item="i"),
            {**event(7, "message.delta", item="i", text="ab"), "from": 6},
        ),
        {"kind": "agent/heartbeat"},
        frame(8, 8, event(8, "message.ended", item="i", content=["abc"])),
    ]
    async with await serve(NEOVIM_0_11) as client:
        stream = client.subscribe(values=values)
        await stream.wait(type="message.ended")
        ended = await stream.unsubscribe()
        assert isinstance(ended, ClientError)
        assert ended.code == -32800
        assert stream.snapshot == {"state": "idle"}
        assert stream.types() == ["message.started", "message.delta", "message.ended"]
        assert stream.items() == {
            "i": {"kind": "message", "item": "i", "content": ["abc"], "ended": True}
        }


@pytest.mark.parametrize(
    "faulty",
    [
        [frame(9, 9)],
        [frame(1, 1, event(1, "a")), frame(3, 3, event(3, "b"))],
        [frame(1, 1, event(1, "a")), frame(1, 1, event(1, "a"))],
        [frame(1, 2, event(2, "a"), event(1, "b"))],
        [frame(1, 1), frame(2, 2, epoch="other")],
    ],
    ids=["hole at the start", "hole", "twice", "disorder", "epoch"],
)
async def test_a_subscription_finds_faults_in_the_stream(faulty: list[Json]) -> None:
    async with await serve() as client:
        stream = client.subscribe(values=faulty, since=0)
        with pytest.raises(AssertionError):
            await stream.wait(type="never")


async def test_a_client_that_stops_reading_holds_the_server_up() -> None:
    async with await serve() as client:
        client.stop_reading()
        call = client.call("test/flood", {"frames": 2000})
        with pytest.raises(TimeoutError):
            await call.result(timeout_s=0.3)
        assert "flooded" not in client.stderr
        client.resume_reading()
        await call.result()
        assert [one["number"] for one in client.of("flood")] == list(range(2000))


async def test_the_death_of_the_server_ends_every_wait() -> None:
    async with await serve() as client:
        client.send_raw(b"Content-Length: 1\r\n\r\n!")
        with pytest.raises(ConnectionError):
            await client.wait_method("never")
        assert await client.exit_code() == 1
        assert "JSONDecodeError" in client.stderr
