"""`tiller daemon` starts, shows and stops the daemon, in plain sentences and exit codes."""

import asyncio
import json
import re
from collections.abc import Mapping

import pytest

from tests.support.clients.daemons import editor, modes_in
from tests.support.clients.server import TILLER, Ground, prompt
from tiller_server.daemon import paths

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]


async def tiller(env: Mapping[str, str], *words: str) -> tuple[int, str, str]:
    """Run a command to its end; gives its code and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *TILLER,
        *words,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_it_is_started_shown_and_stopped(ground: Ground) -> None:
    env = dict(ground.env)
    socket = paths.socket_path(env)
    assert await tiller(env, "daemon", "status") == (
        1,
        f"no daemon runs (it would listen at {socket})\n",
        "",
    )
    assert await tiller(env, "daemon", "stop") == (1, "no daemon runs\n", "")
    code, out, err = await tiller(env, "daemon", "start")
    try:
        assert (code, err) == (0, "")
        started = re.fullmatch(rf"started: process (\d+), at {re.escape(socket)}\n", out)
        assert started is not None
        code, out, _ = await tiller(env, "daemon", "start")
        assert (code, out) == (
            0,
            f"a daemon runs already: process {started[1]}, Tiller 0.1.0\n",
        )
        code, out, _ = await tiller(env, "daemon", "status", "--socket", socket)
        assert code == 0
        assert "0 editors are connected; 0 sessions are loaded, 0 of them work" in out
        code, out, _ = await tiller(env, "daemon", "status", "--json")
        status = json.loads(out)
        assert (code, status["running"], str(status["pid"])) == (0, True, started[1])
        code, out, _ = await tiller(env, "daemon", "logs")
        assert (code, f"serves at {socket}" in out) == (0, True)
    finally:
        code, out, err = await tiller(env, "daemon", "stop", "--force")
    assert (code, out, err) == (0, "stopped\n", "")
    assert "daemon.sock" not in modes_in(env)


async def test_a_run_is_not_stopped_without_a_word(ground: Ground) -> None:
    env = dict(ground.env)
    ground.provider.script([{"text": "slow words", "stall_forever_after_deltas": 1}])
    assert (await tiller(env, "daemon", "start"))[0] == 0
    try:
        async with await editor(env, ground.root) as client:
            await client.request("agent/prompt", prompt("hi"), timeout_s=30)
            code, out, err = await tiller(env, "daemon", "stop")
            assert (code, out) == (1, "")
            assert "1 session has a run going on; wait for them" in err
    finally:
        code, out, _ = await tiller(env, "daemon", "stop", "--force")
    assert code == 0
    assert out.startswith("stopped")


async def test_a_restart_is_another_process_and_starts_one_where_none_runs(ground: Ground) -> None:
    env = dict(ground.env)
    try:
        code, out, err = await tiller(env, "daemon", "restart")
        assert (code, err) == (0, "")
        first = re.match(r"started: process (\d+), at ", out)
        assert first is not None, out
        code, out, err = await tiller(env, "daemon", "restart")
        assert (code, err) == (0, "")
        second = re.fullmatch(r"stopped\nstarted: process (\d+), at .*\n", out)
        assert second is not None, out
        assert second[1] != first[1]
    finally:
        _ = await tiller(env, "daemon", "stop", "--force")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            ("daemon", "status", "--socket", "/nowhere/x"),
            2,
            "a daemon's socket is called daemon.sock",
        ),
        (("daemon", "logs"), 1, "there is no log yet"),
        (("daemon", "fly"), 2, "unknown value"),
    ],
    ids=["socket", "no log", "unknown"],
)
async def test_what_cannot_be_done_is_said(
    ground: Ground, words: tuple[str, ...], code: int, says: str
) -> None:
    found, out, err = await tiller(ground.env, *words)
    assert found == code
    assert says in out + err
