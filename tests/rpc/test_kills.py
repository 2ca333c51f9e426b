"""Kill -9 of the client and of the daemon at any point: no accepted word is lost, and each prompt has one answer."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from tests.support.clients.daemons import daemon_process, serves
from tests.support.clients.rpc import RpcPeer, rpc_process, tiller_rpc
from tests.support.clients.server import Ground, calls, says
from tests.support.harness.sizes import at_size

POINTS = at_size(ci=3, campaign=50)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
WORDS = "please remember the word marmalade"
SCRIPT: tuple[dict[str, Any], ...] = (
    {
        **calls(("bash", {"command": "echo one"}), text="First I look. " * 8),
        "deltas": 12,
        "delta_delay_s": 0.004,
    },
    {**calls(("bash", {"command": "sleep 0.1; echo two"}), text="Then again. " * 8), "deltas": 12},
    {**says("The end."), "repeat": -1},
)


def points() -> list[float]:
    """Return the moments after the prompt, in seconds, over the time that the conversation takes."""
    return [0.6 * number / max(1, POINTS - 1) for number in range(POINTS)]


async def read_all(peer: RpcPeer) -> None:
    """Read to the end of the output; a process that is killed may leave a part of a line."""
    with suppress(json.JSONDecodeError):
        while await peer.next() is not None:
            pass


async def assert_continues(ground: Ground, session: str, *, is_accepted: bool) -> None:
    """Check that another client of the session has the words once, and is answered."""
    command = tiller_rpc("--session", session) if session else tiller_rpc()
    async with rpc_process(command, cwd=ground.root, env=dict(ground.env)) as (peer, _):
        messages = json.dumps((await peer.data("get_messages"))["messages"])
        assert messages.count("marmalade") == 1 or not is_accepted, messages
        assert messages.count("marmalade") <= 1
        assert (await peer.data("get_state"))["isStreaming"] is False
        await peer.data("prompt", message="and again")
        await peer.event("agent_settled")
        assert await peer.data("get_last_assistant_text") == {"text": "The end."}


@pytest.mark.parametrize("whom", ["client", "daemon"])
@pytest.mark.parametrize("after_s", points())
async def test_what_was_accepted_survives_and_the_session_goes_on(
    ground: Ground, whom: str, after_s: float
) -> None:
    ground.configure(sandbox="off")
    ground.provider.script(SCRIPT)
    env = dict(ground.env)
    async with daemon_process(ground.env) as daemon:
        await serves(daemon)
        async with rpc_process(tiller_rpc(), cwd=ground.root, env=env) as (peer, process):
            session = (await peer.data("get_state"))["sessionId"]
            number = peer.send("prompt", message=WORDS)
            await asyncio.sleep(after_s)
            (process if whom == "client" else daemon).kill()
            await read_all(peer)
            code = await process.wait()
        responses = [one for one in peer.records if one.get("id") == number]
        assert len(responses) <= 1
        assert whom == "client" or code == 1
        is_accepted = any(one["success"] for one in responses)
        if whom == "client":
            await assert_continues(ground, session if is_accepted else "", is_accepted=is_accepted)
    if whom == "daemon":
        async with daemon_process(ground.env) as daemon:
            await serves(daemon)
            await assert_continues(ground, session if is_accepted else "", is_accepted=is_accepted)
