"""The shim as a process: what it imports, what it passes on, how it leaves; a stand-in takes the daemon's place."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground
from tests.support.clients.shims import LONG_S, SHIM, TOKEN, Guest, daemon_pid, shim, stand_in
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_links import ProcessLink
from tests.support.workspace.processes import living
from tiller_server import VERSION
from tiller_server.daemon import paths
from tiller_server.daemon.shim.relay import SHOWN_BYTES
from tiller_server.lsp.transport.framing import frame

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FRAMES = at_size(ci=400, campaign=20_000)
HEAVY = (
    *("asyncio", "collections.abc_", "ctypes", "dataclasses", "enum", "json", "logging"),
    *("pathlib", "re", "socket", "signal", "selectors", "subprocess", "typing", "pygls"),
)


class Ear:
    """Keeps what a process writes, byte for byte."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.news = asyncio.Event()
        self.ended = asyncio.Event()

    def bytes_came(self, raw: bytes) -> None:
        self.heard += raw
        self.news.set()

    def link_ended(self, why: str) -> None:
        self.ended.set()

    async def has(self, count: int) -> None:
        while len(self.heard) < count:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 20)


def test_what_an_editor_waits_for_imports_next_to_nothing(child_env: dict[str, str]) -> None:
    source = (
        "import sys; before = set(sys.modules)\n"
        "import tiller_server.cli.entry, tiller_server.cli.lsp_command, tiller_server.daemon.shim.shim\n"
        "print(*(set(sys.modules) - before))"
    )
    # Without `site`, whose .pth files import what they like.
    argv = [sys.executable, "-S", "-c", source]
    root = Path(__file__).resolve().parents[3]
    env = child_env | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'server'}"}
    ran = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=20, check=True)
    loaded = set(ran.stdout.split())
    assert loaded & set(HEAVY) == set()
    assert len({name for name in loaded if not name.startswith("tiller_server")}) < 20, loaded


async def test_who_calls_is_said_first(ground: Ground) -> None:
    env = {**ground.env, "ODD": 'quo"te\n世', "TILLER_X": ""}
    async with stand_in(env) as daemon, shim(ground, env=env) as client:
        hello = (await daemon.guest()).hello
        assert (hello["v"], hello["token"], hello["version"]) == (1, TOKEN, VERSION)
        assert (hello["pid"], hello["cwd"]) == (client.pid, str(ground.root))
        assert {name: hello["env"][name] for name in env} == env


async def attached(client: RawClient, daemon: Any) -> Guest:
    """Introduce an editor to the stand-in."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.initialize(root=None))
        guest = await daemon.guest()
        await guest.introduce()
    assert (await guest.hear())["method"] == "initialized"
    return guest


@pytest.mark.parametrize("seed", range(at_size(ci=2, campaign=20)))
async def test_all_that_is_said_arrives_whole_and_in_order(ground: Ground, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - sizes, not secrets
    up, down = [[_body(draw) for _ in range(FRAMES)] for _ in range(2)]
    first = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}).encode()
    answer = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"capabilities": {}}}).encode()
    ear = Ear()
    async with stand_in(ground.env) as daemon:
        link = await ProcessLink.start(ear, SHIM, env=ground.env, cwd=ground.root)
        try:
            link.write(frame(first))
            guest = await daemon.guest()
            assert await guest.read() == first
            guest.writer.write(frame(answer))
            await ear.has(len(frame(answer)))
            whole = b"".join(map(frame, down))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_trickle(draw, b"".join(map(frame, up)), link.write))
                tasks.create_task(_trickle(draw, whole, guest.writer.write))
                got = [await guest.read() for _ in up]
                await ear.has(len(frame(answer)) + len(whole))
            assert got == up
            assert bytes(ear.heard) == frame(answer) + whole
        finally:
            await link.close()


def _body(draw: random.Random) -> bytes:
    size = draw.choice((0, 1, 10, 300, 5_000, 200_000)) if draw.random() < 0.2 else 80
    kind = draw.randrange(4)
    if kind == 0:
        return draw.randbytes(draw.randrange(size + 1))
    text = "x𝄞" * draw.randrange(size // 2 + 1)
    if kind == 1:
        told: Any = {
            "jsonrpc": "2.0",
            "method": "$/progress",
            "params": {"token": 1, "value": text},
        }
    elif kind == 2:
        told = {"jsonrpc": "2.0", "id": draw.randrange(99), "method": "x/y", "params": [text]}
    else:
        told = {"id": f"tiller-{draw.randrange(99)}", "result": text}
    return json.dumps(told, ensure_ascii=draw.random() < 0.5).encode()


async def _trickle(draw: random.Random, data: bytes, write: Any) -> None:
    at = 0
    while at < len(data):
        size = draw.choice((1, 7, 100, 4_096, 70_000))
        write(data[at : at + size])
        at += size
        await asyncio.sleep(0)


async def test_an_editor_that_does_not_read_holds_the_daemon_back(ground: Ground) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        guest = await attached(client, daemon)
        client.link.stop_reading()
        before = _resident_bytes(client.pid)
        piece = frame(json.dumps({"jsonrpc": "2.0", "method": "x", "params": "y" * 9_000}).encode())
        sent = await _sent_until_stuck(guest, piece)
        # What the system itself holds in its pipes, and asyncio before it, is not the shim's.
        assert sent < SHOWN_BYTES + 3 * 1024 * 1024
        assert _resident_bytes(client.pid) - before < 4 * 1024 * 1024
        client.link.resume_reading()
        await asyncio.wait_for(guest.writer.drain(), 20)


async def _sent_until_stuck(guest: Guest, piece: bytes) -> int:
    sent = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            while True:
                guest.writer.write(piece)
                await guest.writer.drain()
                sent += len(piece)
    return sent


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_a_daemon_that_cuts_a_message_short_leaves_no_half_of_it(ground: Ground) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        guest = await attached(client, daemon)
        asked = client.call("agent/compact")
        assert (await guest.hear())["method"] == "agent/compact"
        guest.writer.write(b"Content-Length: 500\r\n\r\n" + b"x" * 400)
        await guest.writer.drain()
        guest.writer.close()
        with pytest.raises(Exception, match="-32802"):
            await asked.result(timeout_s=10)
        again = await daemon.guest()
        await again.introduce()
        client.notify("x/still")
        assert [(await again.hear())["method"] for _ in range(2)] == ["initialized", "x/still"]


@pytest.mark.parametrize(
    ("end", "code"),
    [("exit", 1), ("shutdown", 0), ("eof", 0), ("TERM", 143), ("INT", 130)],
)
async def test_it_leaves_as_it_is_asked_to(ground: Ground, end: str, code: int) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        guest = await attached(client, daemon)
        match end:
            case "exit":
                client.notify("exit")
            case "shutdown":
                asked = client.call("shutdown")
                guest.say(id=(await guest.hear())["id"], result=None)
                await asked.result()
                client.notify("exit")
            case "eof":
                client.link.close_input()
            case name:
                os.kill(client.pid, signal.Signals[f"SIG{name}"])
        while await asyncio.wait_for(guest.read(), 10) is not None:
            pass
        guest.writer.close()
        assert await client.exit_code(timeout_s=10) == code


async def test_what_cannot_be_read_ends_the_shim_and_is_logged(ground: Ground) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        guest = await attached(client, daemon)
        client.link.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await guest.read() is None
        guest.writer.close()
        assert await client.exit_code(timeout_s=10) == 1
        assert "its input cannot be read" in client.stderr


@pytest.mark.parametrize("code", ["busyOlder", "tool"])
async def test_an_editor_that_is_refused_is_served_all_the_same(ground: Ground, code: str) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.initialize(root=ground.root, timeout_s=LONG_S))
            guest = await daemon.guest()
            refusal = {"tiller": "refused", "why": "it is so", "code": code}
            guest.writer.write(json.dumps(refusal).encode() + b"\n")
            guest.writer.close()
        assert "durable" not in client.result["capabilities"]["experimental"]["agent"]
        assert (await client.request("agent/status", timeout_s=LONG_S))["daemon"][
            "pid"
        ] == client.pid
        assert "it is so" in client.stderr
        told = [one for one in client.received if one.get("method") == "window/showMessage"]
        assert len(told) == (code == "busyOlder")
        await client.shutdown()
        assert await client.exit() == 0


async def test_a_folder_that_others_can_write_to_gets_no_keys(ground: Ground) -> None:
    os.chmod(paths.runtime_folder(ground.env), 0o777)  # noqa: PTH101, S103 - nothing that waits
    async with shim(ground) as client:
        answer = await client.initialize(root=ground.root, timeout_s=LONG_S)
        assert "durable" not in answer["capabilities"]["experimental"]["agent"]
        assert "is open to other users" in client.stderr
        assert daemon_pid(ground.env) is None


async def test_a_daemon_that_cannot_start_is_told_and_done_without(ground: Ground) -> None:
    os.mkdir(paths.lock_path(ground.env))  # noqa: PTH102 - nothing that waits
    async with shim(ground) as client:
        await client.initialize(root=ground.root, timeout_s=LONG_S)
        assert "it cannot be started: tiller daemon: the lock" in client.stderr


async def test_an_older_daemon_that_leaves_is_replaced(ground: Ground) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.initialize(root=ground.root, timeout_s=LONG_S))
            for _ in range(2):
                guest = await daemon.guest()
                refusal = {"tiller": "refused", "why": "it is older", "code": "leaving"}
                guest.writer.write(json.dumps(refusal).encode() + b"\n")
                guest.writer.close()
            await (await daemon.guest()).introduce(experimental={"new": True})
        assert client.result["capabilities"]["experimental"] == {"new": True}


async def test_a_stand_in_that_dies_at_once_again_and_again_is_given_up(ground: Ground) -> None:
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.initialize(root=ground.root, timeout_s=LONG_S))
            for _ in range(5):
                (await daemon.guest()).die()
        assert "daemons ended before they had answered" in client.stderr
        assert (await client.request("agent/status", timeout_s=LONG_S))["daemon"][
            "pid"
        ] == client.pid


async def test_the_shim_leaves_when_the_editor_is_dead_and_its_pipes_are_not(
    ground: Ground,
) -> None:
    editor = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=-1)
    async with stand_in(ground.env) as daemon, shim(ground) as client:
        client.link.write(
            frame(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": 0,
                        "method": "initialize",
                        "params": {"processId": editor.pid, "capabilities": {}},
                    }
                ).encode()
            )
        )
        guest = await daemon.guest()
        await guest.introduce()
        await asyncio.sleep(3.5)  # it has looked once that there is such an editor
        assert living([client.pid])
        editor.kill()
        await editor.wait()
        assert await asyncio.wait_for(guest.read(), 10) is None
        guest.writer.close()
        assert await client.exit_code(timeout_s=10) == 0
