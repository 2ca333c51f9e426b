"""The real process: who may be it, whom it serves, and what becomes of its runs when it ends."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.support.clients.daemons import (
    daemon_process,
    editor,
    hello,
    knock,
    log_of,
    modes_in,
    serves,
    started_process,
)
from tests.support.clients.server import TILLER, Ground, Json, calls, prompt, says
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import RawClient
from tiller_server.daemon import paths

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

STARTERS = at_size(ci=3, campaign=20)
KNOCK = """
import json, os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
token = open(sys.argv[2]).read().strip()
sock.sendall(json.dumps({"v": 1, "token": token, "cwd": "/", "pid": os.getpid(), "version": "0.1.0"}).encode() + b"\\n")
print(sock.recv(4096).decode())
"""

COLLECTING = """
import gc, os, runpy, signal, sys, threading, time
said = []
def look():
    while gc.isenabled():
        time.sleep(0.001)
    said.append("off while it is loaded")
    while not gc.isenabled():
        time.sleep(0.01)
    said.append("on once it serves")
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=look, daemon=True).start()
try:
    runpy.run_module("tiller_server.daemon", run_name="__main__")
except SystemExit as end:
    print(said, end.code)
"""


def ends(ground: Ground) -> list[dict[str, Any]]:
    """Give how the runs of the only session ended, by its file."""
    said = [one["data"] for one in ground.entries() if one.get("customType") == "tiller.run"]
    return [one for one in said if one["status"] != "started"]


async def test_of_two_starters_one_serves_and_the_other_leaves_without_a_word(
    ground: Ground,
) -> None:
    env = dict(ground.env)
    for _ in range(STARTERS):
        both = await asyncio.gather(*(started_process(env) for _ in range(2)))  # noqa: TID251 - at once
        waits = [asyncio.ensure_future(one.process.wait()) for one in both]  # noqa: TID251 - as above
        _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        over = [one for one, wait in zip(both, waits, strict=True) if wait.done()]
        (loser,) = over
        (winner,) = [one for one in both if one is not loser]
        assert loser.process.returncode == 0
        await serves(winner)
        status = json.loads(await knock(env, hello(env, ask="status")))
        assert status["pid"] == winner.pid
        winner.terminate()
        assert await winner.ended() == 0
        _ = await asyncio.wait(waits)
    log = log_of(env)
    assert log.count("another daemon serves already") == STARTERS
    assert "ERROR" not in log


async def test_a_folder_of_the_wrong_mode_is_told_and_left_alone(ground: Ground) -> None:
    env = dict(ground.env)
    ground.dirs.runtime.chmod(0o755)
    daemon = await started_process(env)
    assert await daemon.ended() == 3
    assert list(ground.dirs.runtime.iterdir()) == []


async def test_what_a_tool_has_started_is_refused(ground: Ground) -> None:
    env = dict(ground.env)
    ground.configure(sandbox="off")
    script = ground.file("knock.py", KNOCK)
    words = [sys.executable, str(script), paths.socket_path(env), paths.token_path(env)]
    command = shlex.join(words)
    said = shlex.quote(str(ground.root / "said"))
    # Of no parent, no session and no variable of the tool's.
    apart = f"(setsid env -i {command} > {said} &); until [ -s {said} ]; do sleep 0.1; done"
    ground.provider.script(
        [
            calls(("bash", {"command": command})),
            calls(("bash", {"command": apart})),
            says("done"),
        ]
    )
    async with daemon_process(env), await editor(env, ground.root) as client:
        result = await client.request("agent/prompt", prompt("try", wait=True), timeout_s=40)
        assert result["status"] == "completed"
    outputs = [one["message"] for one in ground.entries() if one.get("type") == "message"]
    (first, _) = [str(one["content"]) for one in outputs if one["role"] == "toolResult"]
    assert '"code": "tool"' in first
    assert json.loads((ground.root / "said").read_text())["code"] == "tool"


async def _over_socket(env: Mapping[str, str], ground: Ground, theirs: Json) -> RawClient:
    return await editor(env, ground.root, env=theirs)


async def _over_shim(env: Mapping[str, str], ground: Ground, theirs: Json) -> RawClient:
    client = await RawClient.spawn((*TILLER, "lsp"), env={**env, **theirs}, cwd=ground.root)
    await client.initialize(root=ground.root, timeout_s=30)
    return client


@pytest.mark.parametrize("connect", [_over_socket, _over_shim], ids=["socket", "shim"])
async def test_each_connection_runs_its_own_programs(
    ground: Ground, connect: Callable[..., Awaitable[RawClient]]
) -> None:
    env = dict(ground.env)
    ground.configure(sandbox="off")
    for name in ("one", "two"):
        program = ground.root.parent / name / "python"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho this is the python of {name}\n", encoding="utf-8")
        program.chmod(0o755)

    def of(name: str) -> dict[str, str]:
        return {**env, "PATH": f"{ground.root.parent / name}:/usr/bin:/bin", "FLASK_APP": name}

    async with (
        daemon_process(env),
        await connect(env, ground, of("one")) as one,
        await connect(env, ground, of("two")) as two,
    ):
        for client in (one, two, one):
            ground.provider.script(
                [calls(("bash", {"command": "python; echo whose: $FLASK_APP"})), says("done")]
            )
            result = await client.request("agent/prompt", prompt("go", wait=True), timeout_s=40)
            assert result["status"] == "completed"
        opened = [await client.request("agent/session/open", {}) for client in (one, two)]
        assert opened[0]["session"] == opened[1]["session"]
        assert "durable" in one.result["capabilities"]["experimental"]["agent"]
    messages = [one["message"] for one in ground.entries() if one.get("type") == "message"]
    said = [one["content"][0]["text"] for one in messages if one["role"] == "toolResult"]
    assert [one.split() for one in said] == [
        f"this is the python of {name} whose: {name}".split() for name in ("one", "two", "one")
    ]
    (path,) = ground.sessions()
    assert "FLASK_APP" not in path.read_text("utf-8").replace("$FLASK_APP", "")


async def test_a_terminal_that_closes_ends_commands_but_not_the_daemon(ground: Ground) -> None:
    env = dict(ground.env)
    command = {"command": "kill -HUP $$; echo it is ignored"}
    ground.provider.script([calls(("bash", command)), says("done")])
    async with daemon_process(env) as daemon, await editor(env, ground.root) as client:
        os.kill(daemon.pid, signal.SIGHUP)
        result = await client.request("agent/prompt", prompt("go", wait=True), timeout_s=40)
        assert result["status"] == "completed"
    messages = [one["message"] for one in ground.entries() if one.get("type") == "message"]
    (said,) = [str(one["content"]) for one in messages if one["role"] == "toolResult"]
    assert "SIGHUP" in said
    assert "ignored" not in said


async def test_an_end_on_request_settles_what_runs(ground: Ground) -> None:
    env = dict(ground.env)
    ground.provider.script([calls(("bash", {"command": "sleep 600"}))])
    async with daemon_process(env) as daemon, await editor(env, ground.root) as client:
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go"))
        await stream.wait(type="tool.running")
        daemon.terminate()
        assert await daemon.ended() == 0
    (end,) = ends(ground)
    assert end["status"] in {"cancelled", "interrupted"}
    assert "daemon.sock" not in modes_in(env)


async def test_a_run_of_a_daemon_that_was_killed_ends_as_interrupted(ground: Ground) -> None:
    env = dict(ground.env)
    ground.provider.script([calls(("bash", {"command": "sleep 600"}))])
    async with daemon_process(env) as daemon, await editor(env, ground.root) as client:
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go"))
        await stream.wait(type="tool.running")
        daemon.kill()
        await daemon.ended()
    assert ends(ground) == []
    async with daemon_process(env), await editor(env, ground.root) as client:
        await client.request("agent/session/open", {})
        (end,) = ends(ground)
        assert end["status"] == "interrupted"


def test_the_collector_rests_only_until_the_daemon_serves(ground: Ground) -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", COLLECTING],
        env=dict(ground.env),
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == (
        "['off while it is loaded', 'on once it serves'] 0",
        "",
    )
