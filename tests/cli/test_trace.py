"""`tiller trace`: nothing is lost on the way, no secret is kept, and a replay tells what is answered otherwise."""

import asyncio
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import SERVER, TILLER
from tests.support.harness.isolation import TillerDirs
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL
from tiller_server.cli.trace.file import TraceInvalid, TraceMessage, read_trace
from tiller_server.cli.trace.replay import differences, learn, replay, translated

pytestmark = pytest.mark.timeout(60)

A, B = "01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"
SECRET = "sk-" + "proj-Vq8ZtR3mXw9KcY2LbN7dPf4Hs6Gj1Aa5"


def env_of(dirs: TillerDirs) -> dict[str, str]:
    return {**dirs.variables(), "PATH": "/usr/bin:/bin", "MY_API_KEY": SECRET}


async def recorded(file: Path, dirs: TillerDirs, root: Path) -> int:
    """Record a short conversation; give the exit code."""
    argv = (*TILLER, "trace", "record", str(file), "--", *SERVER)
    client = await RawClient.spawn(argv, env=env_of(dirs), cwd=root)
    async with client:
        await client.initialize(PANEL, root=root)
        client.open((root / "a.py").as_uri(), f"key = '{SECRET}'\n")
        opened = await client.request("agent/session/open", {})
        await client.request("agent/session/rename", {"session": opened["session"], "title": "x"})
        await client.request("agent/status", {})
        client.notify("agent/ack", {"token": "a-progress", "seq": 1})
        client.notify("agent/ack", {"token": SECRET, "seq": 1})
        await client.request("shutdown")
        client.notify("exit")
        return await client.exit_code() or 0


@pytest.mark.e2e
async def test_what_was_recorded_is_replayed_with_the_same_answers(
    tiller_dirs: TillerDirs, tmp_path: Path
) -> None:
    root = tmp_path / "w"
    root.mkdir()
    file = tmp_path / "bug.trace"
    assert await recorded(file, tiller_dirs, root) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET not in file.read_text()
    trace = read_trace(file)
    acks: list[Any] = [one.message["params"] for one in trace if one.method == "agent/ack"]
    assert [one["token"] == "a-progress" for one in acks] == [True, False]
    methods = [one.method for one in trace if one.side == "client" and one.method]
    assert methods[0] == "initialize"
    assert methods[-2:] == ["shutdown", "exit"]
    assert [one.at_ms for one in trace] == sorted(one.at_ms for one in trace)
    again = await replay(trace, SERVER, env=env_of(tiller_dirs), prompts="leftOut", pace="fast")
    assert again.differences == []
    assert again.compared == 5
    changed = tuple(
        TraceMessage(
            at_ms=one.at_ms, side=one.side, message={**one.message, "result": {"daemon": 7}}
        )
        if one.side == "server" and one.message.get("result", {}) and "sessions" in str(one.message)
        else one
        for one in trace
    )
    other = await replay(changed, SERVER, env=env_of(tiller_dirs), prompts="leftOut", pace="fast")
    assert any("daemon: was a number, is an object" in one for one in other.differences)


async def test_bytes_that_are_no_messages_still_pass_and_the_exit_code_is_the_servers(
    tmp_path: Path,
) -> None:
    file = tmp_path / "odd.trace"
    echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.exit(7)"
    argv = (*TILLER, "trace", "record", str(file), "--", sys.executable, "-c", echo)
    child = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    odd = b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)) * 300
    out, _ = await child.communicate(odd)
    assert out == odd
    assert child.returncode == 7
    broken = [json.loads(line) for line in file.read_text().splitlines()[1:]]
    assert {one["from"] for one in broken} == {"client", "server"}
    assert all("broken" in one for one in broken)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({"a": 1}, {"a": 2.5}, []),
        ({"a": 1}, {"a": "1"}, ["a: was a number, is a string"]),
        ({"a": 1}, {}, ["a: is missing"]),
        ({}, {"a": None}, ["a: is new"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}, 1]}, ["a[0].b: was a number, is a boolean"]),
        ({"a": []}, {"a": [1]}, []),
        (None, [], ["the answer: was null, is a list"]),
    ],
    ids=repr,
)
def test_differences_are_those_of_shape(before: Any, now: Any, told: list[str]) -> None:
    assert list(differences(before, now)) == told


def test_ids_are_followed_wherever_they_stand() -> None:
    ids: dict[str, str] = {}
    learn(ids, {"session": A, "items": [{"x": A}], "n": 1}, {"session": B, "items": [], "n": A})
    assert ids == {A: B}
    assert translated({"p": [f"agent-run/{A}", A, 1]}, ids) == {"p": [f"agent-run/{B}", B, 1]}


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"tiller":"trace","v":2}'], ids=repr
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(TraceInvalid):
        read_trace(file)
