"""`tiller rpc` as a process: through the daemon, alone, and how it ends."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.clients.daemons import daemon_process, serves, token_of
from tests.support.clients.rpc import RpcPeer, rpc_process, tiller_rpc
from tests.support.clients.server import TILLER, Ground, calls, says
from tiller_server.daemon import paths

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
WAITS = calls(("bash", {"command": "echo $$ > pid; echo on; exec sleep 60"}))


@asynccontextmanager
async def tiller(
    ground: Ground, *arguments: str
) -> AsyncGenerator[tuple[RpcPeer, asyncio.subprocess.Process]]:
    """Start the command in the workspace, without a daemon."""
    command = tiller_rpc("--in-process", *arguments)
    async with rpc_process(command, cwd=ground.root, env=dict(ground.env)) as started:
        yield started


async def ended(peer: RpcPeer, process: asyncio.subprocess.Process) -> int:
    """Read to the end of the output and give the exit code."""
    while await peer.next() is not None:
        pass
    return await process.wait()


def is_running(ground: Ground) -> bool:
    """Say whether the command of the run still runs."""
    pid = int((ground.root / "pid").read_text("utf-8"))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def begun(peer: RpcPeer) -> None:
    """Begin a run whose command does not end."""
    await peer.data("prompt", message="go")
    await peer.event("tool_execution_update")


async def test_a_client_that_starts_pi_starts_it_as_well(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    chosen = ("--mode", "rpc", "--provider", "lab", "--model", "m", "--no-session")
    async with tiller(ground, *chosen) as (peer, process):
        await peer.data("prompt", message="go")
        await peer.event("agent_settled")
        assert await peer.data("get_last_assistant_text") == {"text": "Done."}
        peer.close()
        assert await ended(peer, process) == 0
    assert ground.sessions() == []


async def test_the_end_of_the_input_ends_the_run(ground: Ground) -> None:
    ground.configure(sandbox="off")  # in a sandbox its process id is another
    ground.provider.script([WAITS])
    async with tiller(ground) as (peer, process):
        await begun(peer)
        assert is_running(ground)
        peer.close()
        assert await ended(peer, process) == 0
    assert not is_running(ground)


async def test_commands_before_the_end_of_the_input_are_answered(ground: Ground) -> None:
    async with tiller(ground) as (peer, process):
        peer.write(b'{"id": 1, "type": "get_state"}\n{"id": 2, "type": "get_available_models"}')
        peer.close()
        assert await ended(peer, process) == 0
    assert sorted(one["id"] for one in peer.records) == [1, 2]
    assert all(one["success"] for one in peer.records)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_ends_it_with_its_run(ground: Ground, number: int, code: int) -> None:
    ground.configure(sandbox="off")
    ground.provider.script([WAITS])
    async with tiller(ground) as (peer, process):
        await begun(peer)
        process.send_signal(number)
        assert await ended(peer, process) == code
    assert not is_running(ground)


async def test_a_session_is_continued(ground: Ground) -> None:
    ground.provider.script([says("One."), says("Two.")])
    async with tiller(ground) as (peer, process):
        await peer.data("prompt", message="first")
        await peer.event("agent_settled")
        state = await peer.data("get_state")
        peer.close()
        await ended(peer, process)
    for chosen in (("--continue",), ("--session", state["sessionFile"])):
        async with tiller(ground, *chosen) as (peer, process):
            again = await peer.data("get_state")
            assert (again["sessionId"], again["messageCount"]) == (state["sessionId"], 2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--session", "nope"), "nope"),
        (("--model", "nope"), "nope"),
        (("--provider", "lab"), "--provider needs --model"),
        (("--extension", "x.py"), "--extension"),
        (("--fork", "--continue"), "clone"),
    ],
)
async def test_an_option_that_cannot_be_used_ends_it(
    ground: Ground, arguments: tuple[str, ...], problem: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *tiller_rpc("--in-process", *arguments),
        cwd=ground.root,
        env=dict(ground.env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out == b""
    assert problem in err.decode()
    assert err.count(b"\n") == 1
    assert process.returncode != 0


async def test_the_daemon_serves_it(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    env = dict(ground.env)
    async with daemon_process(ground.env) as daemon:
        await serves(daemon)
        command = tiller_rpc("--no-session")
        async with rpc_process(command, cwd=ground.root, env=env) as (peer, process):
            await peer.data("prompt", message="go")
            await peer.event("agent_settled")
            peer.close()
            assert await ended(peer, process) == 0
        async with rpc_process(tiller_rpc(), cwd=ground.root, env=env) as (peer, process):
            assert (await peer.data("get_state"))["messageCount"] == 0
            daemon.kill()
            assert await ended(peer, process) == 1


async def test_a_client_that_is_killed_leaves_no_run_in_the_daemon(ground: Ground) -> None:
    ground.configure(sandbox="off")
    ground.provider.script([WAITS])
    env = dict(ground.env)
    async with daemon_process(ground.env) as daemon:
        await serves(daemon)
        async with rpc_process(tiller_rpc(), cwd=ground.root, env=env) as (peer, process):
            await begun(peer)
            session = (await peer.data("get_state"))["sessionId"]
            process.kill()
            await process.wait()
        async with rpc_process(tiller_rpc("--session", session), cwd=ground.root, env=env) as (
            peer,
            process,
        ):
            state = await peer.data("get_state")
            assert state["isStreaming"] is False
    assert not is_running(ground)


async def test_a_daemon_is_started_where_there_is_none(ground: Ground) -> None:
    env = dict(ground.env)
    async with rpc_process(tiller_rpc("--no-session"), cwd=ground.root, env=env) as (peer, process):
        assert (await peer.data("get_state"))["messageCount"] == 0
        peer.close()
        assert await ended(peer, process) == 0
    stopping = await asyncio.create_subprocess_exec(
        *TILLER, "daemon", "stop", env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await stopping.communicate()
    assert out == b"stopped\n"


def exchange_token(ground: Ground) -> None:
    """Write a token that the daemon does not know."""
    length = len(token_of(ground.env))
    Path(paths.token_path(ground.env)).write_text("0" * length, "utf-8")


async def test_a_daemon_that_refuses_is_done_without(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    env = dict(ground.env)
    async with daemon_process(ground.env) as daemon:
        await serves(daemon)
        exchange_token(ground)
        async with rpc_process(tiller_rpc(), cwd=ground.root, env=env) as (peer, process):
            await peer.data("prompt", message="go")
            await peer.event("agent_settled")
            peer.close()
            assert await ended(peer, process) == 0
    assert len(ground.sessions()) == 1


async def test_two_clients_of_a_session_see_one_run_and_settle_each_other(ground: Ground) -> None:
    """The second client comes while a dialog waits: it is asked too, and its answer is late."""
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"}), text="Look:"), says("Done.")])
    env = dict(ground.env)
    async with daemon_process(ground.env) as daemon:
        await serves(daemon)
        async with rpc_process(tiller_rpc(), cwd=ground.root, env=env) as (one, _):
            await one.data("prompt", message="go")
            dialog = await one.event("extension_ui_request")
            session = (await one.data("get_state"))["sessionId"]
            command = tiller_rpc("--session", session)
            async with rpc_process(command, cwd=ground.root, env=env) as (other, _):
                asked = await other.event("extension_ui_request")
                assert (asked["id"], asked["options"]) == (dialog["id"], dialog["options"])
                one.send("extension_ui_response", id=dialog["id"], value="Allow once")
                await one.event("agent_settled")
                other.send("extension_ui_response", id=dialog["id"], cancelled=True)
                await other.event("agent_settled")
                assert await other.data("get_last_assistant_text") == {"text": "Done."}
                assert (await other.data("get_state"))["sessionId"] == session
    assert other.types[:4] == [
        *("agent_start", "extension_ui_request", "tool_execution_start", "tool_execution_end")
    ]
    assert (ground.root / "x").exists()
