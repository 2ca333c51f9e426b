"""Lines that are no commands: each has one clear answer, and the next one is served."""

import asyncio
import json
import random

import pytest

from tests.support.clients.rpc import Json, RpcPeer, rpc_client
from tests.support.clients.server import Ground, says
from tiller_server.agent_client.lines import JsonLines, LineTooLong
from tiller_server.rpc.server import HANDLERS, RpcOutput

QUICK = [name for name in HANDLERS if name not in {"prompt", "steer", "follow_up", "bash"}]


async def answers(peer: RpcPeer, data: bytes) -> list[Json]:
    """Send bytes and give the responses before that of a command behind them."""
    begun = len(peer.records)
    peer.write(data)
    peer.write(b"\n")
    await peer.data("clear_queue")
    return peer.records[begun:-1]


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"nonsense", b"5", b"[]", b"null", b'"x"', b"\xff\xfe", b"{" * 5000, b"NaN"],
)
async def test_a_line_that_is_no_command_is_answered_without_an_id(
    ground: Ground, line: bytes
) -> None:
    async with rpc_client(ground) as peer:
        (answer,) = await answers(peer, line)
    assert answer["error"].startswith("Failed to parse command: ")
    assert {**answer, "error": ""} == {
        "type": "response",
        "command": "parse",
        "success": False,
        "error": "",
    }


async def test_an_unknown_command_is_named_with_its_id(ground: Ground) -> None:
    async with rpc_client(ground) as peer:
        found = await answers(peer, b'{"id": 7, "type": "nope"}\n{"id": "a"}\n{"type": ["x"]}')
    assert sorted(found, key=str) == sorted(
        [
            {"id": 7, **unknown("nope")},
            {"id": "a", **unknown("null")},
            unknown('["x"]'),
        ],
        key=str,
    )


def unknown(name: str) -> Json:
    return {
        "type": "response",
        "command": name,
        "success": False,
        "error": f"Unknown command: {name}",
    }


async def test_only_a_line_feed_ends_a_command(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    text = "one\u2028two\u2029three\x85four\rfive"
    async with rpc_client(ground) as peer:
        command = {"id": "a", "type": "prompt", "message": text}
        peer.write(json.dumps(command, ensure_ascii=False).encode() + b"\r\n")
        assert (await peer.response("a"))["success"]
        await peer.event("agent_settled")
        said = (await peer.data("get_fork_messages"))["messages"]
    assert [one["text"] for one in said] == [text]


async def test_generated_lines_are_all_answered(ground: Ground) -> None:
    seeded = random.Random(27)  # noqa: S311 - the same lines each time
    values = [None, True, -1, 1e300, "", "x" * 100, [], [[]], {}, {"a": {}}, "\u2028", "../x"]
    fields = ["message", "images", "mode", "level", "enabled", "sessionPath", "entryId", "name"]
    fields += [
        "since",
        "provider",
        "modelId",
        "outputPath",
        "customInstructions",
        "streamingBehavior",
    ]
    async with rpc_client(ground) as peer:
        sent: set[str] = set()
        for number in range(300):
            name = f"f{number}"
            chosen = {one: seeded.choice(values) for one in seeded.sample(fields, 3)}
            chosen.pop("outputPath", None) if isinstance(chosen.get("outputPath"), str) else None
            command = {"id": name, "type": seeded.choice([*QUICK, "nope"]), **chosen}
            peer.write(json.dumps(command).encode() + b"\n")
            sent.add(name)
        while sent:
            record = await peer.next()
            assert record is not None
            if record["type"] == "response":
                sent.remove(record["id"])
        assert (await peer.data("get_state"))["isStreaming"] is False


def test_a_line_above_the_limit_is_skipped_whole() -> None:
    reader = JsonLines(limit_bytes=10)
    reader.feed(b"x" * 25)
    with pytest.raises(LineTooLong):
        reader.take()
    reader.feed(b"x" * 25)
    assert reader.take() is None
    reader.feed(b"x\nshort\r\n" + b"y" * 11 + b"\nnext\nrest")
    assert reader.take() == b"short"
    with pytest.raises(LineTooLong):
        reader.take()
    assert reader.take() == b"next"
    assert reader.take() is None
    assert reader.last() == b"rest"
    assert reader.last() is None


def test_lines_are_the_same_however_their_bytes_arrive() -> None:
    data = "one\r\n\ntwo\u2028\r\r\nthree\n".encode()
    for size in range(1, len(data)):
        reader, lines = JsonLines(), []
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            while (line := reader.take()) is not None:
                lines.append(line)
        assert lines == [b"one", b"", "two\u2028\r".encode(), b"three"]


class StuckSink:
    """A stream to a client that does not read."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.begun = asyncio.Event()
        self._never = asyncio.Event()

    def write(self, data: bytes, /) -> None:
        self.written += data
        self.begun.set()

    async def drain(self) -> None:
        await self._never.wait()

    def close(self) -> None:
        self._never.set()

    async def wait_closed(self) -> None:
        return


async def test_a_client_that_does_not_read_is_left_at_a_limit() -> None:
    sink = StuckSink()
    output = RpcOutput(sink, limit_bytes=1000)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(output.write())
        lost = tasks.create_task(output.lost())
        output.respond({"text": "first"})
        await sink.begun.wait()
        for _ in range(100):
            output.respond({"text": "x" * 100})
        await lost
        writing.cancel()
    assert bytes(sink.written) == b'{"text":"first"}\n'


async def test_events_that_are_held_back_follow_the_response() -> None:
    sink = StuckSink()
    output = RpcOutput(sink)
    output.hold()
    output.hold()
    output.show([{"event": 1}])
    output.respond({"response": 1})
    output.let_go()
    output.show([{"event": 2}])
    output.let_go()
    output.show([{"event": 3}])
    sink.close()
    await output.flush()
    assert [json.loads(line) for line in bytes(sink.written).splitlines()] == [
        {"response": 1},
        {"event": 1},
        {"event": 2},
        {"event": 3},
    ]
