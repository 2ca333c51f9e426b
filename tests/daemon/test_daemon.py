"""The daemon serves those it should, sends the others away in words, and leaves when nobody needs it."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

import pytest

from tests.support.clients.daemons import (
    daemon_here,
    editor,
    folder_of,
    hello,
    knock,
    modes_in,
    token_of,
)
from tests.support.clients.server import Ground, prompt, says
from tests.support.harness.clock import HeldClock
from tests.support.harness.isolation import TillerDirs
from tiller_server.daemon import paths
from tiller_server.daemon.admission.peer import Peer
from tiller_server.daemon.errors import CannotServe
from tiller_server.daemon.lockfile import Ownership, owner


@pytest.fixture
def env(tiller_dirs: TillerDirs) -> dict[str, str]:
    return {**tiller_dirs.variables(), "PATH": "/usr/bin:/bin"}


def told(answer: bytes) -> dict[str, Any]:
    return json.loads(answer)


async def test_what_it_is_found_by_is_for_its_user_alone(env: dict[str, str]) -> None:
    async with daemon_here(env):
        assert modes_in(env) == dict.fromkeys(("daemon.sock", "daemon.token", "daemon.lock"), 0o600)
        assert owner(Path(paths.lock_path(env))) is not None
    assert list(modes_in(env)) == ["daemon.lock"]
    assert owner(Path(paths.lock_path(env))) is None


async def test_a_client_is_served_and_told_that_it_lasts(ground: Ground) -> None:
    env = dict(ground.env)
    async with daemon_here(env), await editor(env, ground.root) as client:
        agent = client.result["capabilities"]["experimental"]["agent"]
        assert agent["durable"] == {}
        ground.provider.script([says("hello")])
        result = await client.request("agent/prompt", prompt("hi", wait=True))
        assert result["status"] == "completed"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"token": "wrong"}, "token"),
        ({"token": ""}, "token"),
        ({"v": 0}, "version"),
        ({"v": "1"}, "hello"),
    ],
    ids=["wrong token", "no token", "old protocol", "no number"],
)
async def test_a_refusal_is_one_line(
    env: dict[str, str], change: dict[str, Any], code: str
) -> None:
    async with daemon_here(env):
        answer = await knock(env, hello(env, **change))
        assert answer.count(b"\n") == 1
        refused = told(answer)
        assert (refused["tiller"], refused["code"]) == ("refused", code)
        assert refused["why"]


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\n", b"Content-Length: 2\r\n\r\n{}", b'{"v":1'],
    ids=["get", "post", "lsp", "half a line"],
)
async def test_who_does_not_say_hello_gets_no_word(
    env: dict[str, str], said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with daemon_here(env, checks=lambda usual: replace(usual, within_s=0.1)):
        assert await knock(env, said) == b""
    lines = [one for one in caplog.records if one.name == "tiller_server.daemon.admission.listener"]
    assert len(lines) == 1


async def test_another_user_is_refused_whatever_they_say(env: dict[str, str]) -> None:
    def stranger(_: object) -> Peer:
        return Peer(uid=4_000_000, pid=None)

    async with daemon_here(env, checks=lambda usual: replace(usual, peer=stranger)):
        assert told(await knock(env, b""))["code"] == "user"


async def test_a_client_with_other_folders_is_refused(env: dict[str, str]) -> None:
    async with daemon_here(env):
        other = {**env, "TILLER_DATA_DIR": "/elsewhere"}
        assert told(await knock(env, hello(env, env=other)))["code"] == "otherFolders"


async def test_a_socket_that_was_left_behind_is_replaced(env: dict[str, str]) -> None:
    left = socket(AF_UNIX)
    left.bind(str(folder_of(env) / paths.SOCKET))
    left.close()
    async with daemon_here(env):
        assert told(await knock(env, hello(env, ask="status")))["tiller"] == "status"


async def test_the_second_one_leaves_and_disturbs_nothing(env: dict[str, str]) -> None:
    async with daemon_here(env):
        token = token_of(env)
        async with daemon_here(env) as (_, second):
            assert await second is False
        assert token_of(env) == token
        assert told(await knock(env, hello(env, ask="status")))["tiller"] == "status"


async def test_one_that_leaves_is_waited_for(env: dict[str, str]) -> None:
    older = Ownership.take(folder_of(env) / "daemon.lock")
    assert older is not None
    clock = HeldClock()
    starting = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:

        async def begin() -> None:
            async with daemon_here(env, clock=clock) as (_, running):
                assert not running.done()
                starting.set()

        tasks.create_task(begin())
        while not clock.slept:
            await asyncio.sleep(0)
            await asyncio.to_thread(lambda: None)
        older.release()
        clock.advance(1)
        await starting.wait()


async def test_a_folder_that_others_may_enter_is_refused(env: dict[str, str]) -> None:
    folder_of(env, mode=0o755)
    with pytest.raises(ExceptionGroup) as failed:
        async with daemon_here(env):
            pass
    assert failed.group_contains(CannotServe, match="chmod 700")


async def test_it_leaves_when_nobody_has_used_it_for_long(env: dict[str, str]) -> None:
    clock = HeldClock()
    async with daemon_here({**env, "TILLER_DAEMON_IDLE_S": "100"}, clock=clock) as (_, running):
        async with await editor(env) as client:
            await client.initialize()
            for _ in range(10):
                clock.advance(60)
                await asyncio.sleep(0.01)
            assert not running.done()
        while told(await knock(env, hello(env, ask="status")))["connections"]:
            pass
        clock.advance(60)
        await asyncio.sleep(0.05)
        assert not running.done()
        for _ in range(4):
            clock.advance(40)
            await asyncio.sleep(0.02)
        assert await running is True
    assert list(modes_in(env)) == ["daemon.lock"]


async def test_one_that_nobody_can_find_leaves(env: dict[str, str]) -> None:
    clock = HeldClock()
    async with daemon_here(env, clock=clock) as (_, running):
        shutil.rmtree(folder_of(env))
        while not running.done():
            clock.advance(30)
            await asyncio.to_thread(lambda: None)
        assert await running is True


async def test_one_that_was_put_out_leaves_the_next_ones_socket_alone(env: dict[str, str]) -> None:
    async with daemon_here(env) as (older, running):
        shutil.rmtree(folder_of(env))
        async with daemon_here(env):
            older.leave()
            assert await running is True
            assert told(await knock(env, hello(env, ask="status")))["tiller"] == "status"


async def test_an_older_idle_one_makes_room_for_a_newer_client(env: dict[str, str]) -> None:
    async with daemon_here(env, version="0.1.0") as (_, running):
        answer = told(await knock(env, hello(env, version="0.2.0")))
        assert answer["code"] == "leaving"
        assert await running is True
    assert list(modes_in(env)) == ["daemon.lock"]


async def test_an_older_busy_one_stays_and_says_so(env: dict[str, str]) -> None:
    async with daemon_here(env, version="0.1.0") as (_, running), await editor(env) as client:
        await client.initialize()
        answer = told(await knock(env, hello(env, version="0.2.0")))
        assert answer["code"] == "busyOlder"
        assert "Tiller 0.1.0, older than this client (0.2.0)" in answer["why"]
        assert not running.done()


async def test_an_older_client_is_served_by_a_newer_one(env: dict[str, str]) -> None:
    async with daemon_here(env, version="0.2.0"), await editor(env, version="0.1.0") as client:
        assert (await client.initialize())["serverInfo"]["version"] == "0.2.0"


async def test_it_says_what_it_does_and_stops_when_asked(env: dict[str, str]) -> None:
    async with daemon_here(env) as (_, running), await editor(env) as client:
        await client.initialize()
        status = told(await knock(env, hello(env, ask="status")))
        assert (status["connections"], status["sessions"], status["working"]) == (1, 0, 0)
        assert told(await knock(env, hello(env, ask="stop")))["tiller"] == "stopping"
        assert await running is True


async def test_it_does_not_stop_a_run_unless_it_is_told_twice(ground: Ground) -> None:
    env = dict(ground.env)
    ground.provider.script([{"text": "slow words", "stall_forever_after_deltas": 1}])
    async with daemon_here(env) as (_, running), await editor(env, ground.root) as client:
        await client.request("agent/prompt", prompt("hi"))
        answer = told(await knock(env, hello(env, ask="stop")))
        assert (answer["tiller"], answer["working"]) == ("busy", 1)
        assert not running.done()
        assert told(await knock(env, hello(env, ask="stopNow")))["tiller"] == "stopping"
        assert await running is True
    said = [one["data"] for one in ground.entries() if one.get("customType") == "tiller.run"]
    assert [one["status"] for one in said][-1] in {"cancelled", "interrupted"}


async def test_a_connection_that_is_cut_harms_no_other(ground: Ground) -> None:
    env = dict(ground.env)
    ground.provider.script([{"when": "hi", "text": "hello", "repeat": -1}])
    async with daemon_here(env), await editor(env, ground.root) as steady:
        for said in (b"Content-Length: 99\r\n\r\n{", b"nonsense\r\n\r\n", b"\0" * 5000):
            reader, writer = await asyncio.open_unix_connection(paths.socket_path(env))
            writer.write(hello(env) + said)
            await writer.drain()
            writer.close()
            await reader.read()
        result = await steady.request("agent/prompt", prompt("hi", wait=True))
        assert result["status"] == "completed"
