"""Kill -9 of daemon, shim and client at any point: no word of the user is lost, and each prompt has one answer."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from typing import Any

import pytest

from tests.support.acp.client import AcpClient, result, states_of
from tests.support.acp.processes import acp_process
from tests.support.clients.daemons import daemon_process
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import daemon_pid, end_daemon
from tests.support.harness.sizes import at_size

POINTS = at_size(ci=3, campaign=50)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
WORDS = "please remember the word marmalade"
END = "The end."
SCRIPT: tuple[dict[str, Any], ...] = (
    {
        **calls(("bash", {"command": "echo one"}), text="First I look. " * 8),
        "deltas": 12,
        "delta_delay_s": 0.004,
    },
    {
        **calls(("bash", {"command": "sleep 0.1; echo two"}), text="Then again. " * 8),
        "deltas": 12,
        "delta_delay_s": 0.004,
    },
    {**says(END), "repeat": -1},
)


def points() -> list[float]:
    """Return the moments after the prompt, in seconds, over the time that the conversation takes."""
    return [0.8 * number / max(1, POINTS - 1) for number in range(POINTS)]


def responses(client: AcpClient, number: int) -> list[dict[str, Any]]:
    return [
        one
        for way, one in client.record
        if way == "<" and one.get("id") == number and "method" not in one
    ]


def assert_no_text_twice(client: AcpClient) -> None:
    """Check that each message holds its text once: numbers in `_meta` only grow, and no chunk repeats."""
    texts: dict[str, str] = {}
    for update in client.updates:
        if update["sessionUpdate"] == "agent_message_chunk":
            item = update["messageId"]
            texts[item] = texts.get(item, "") + update["content"]["text"]
    for text in texts.values():
        assert text.count("First I look. ") <= 8
        assert text.count("Then again. ") <= 8
        assert text.count(END) <= 1


def kill_daemon(ground: Ground) -> None:
    pid = daemon_pid(ground.env)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("after_s", points())
async def test_a_prompt_survives_the_daemon(ground: Ground, after_s: float) -> None:
    ground.provider.script(SCRIPT)
    try:
        async with acp_process(ground.env, ground.root) as (client, _):
            await client.initialize()
            session = await client.new(ground.root)
            prompt = client.prompt(session, WORDS)
            await asyncio.sleep(after_s)
            kill_daemon(ground)
            async with asyncio.timeout(60):
                message = await prompt
            assert message.get("result", {}).get("stopReason") == "end_turn", message
            await result(client.prompt(session, "and again"))
            assert len(responses(client, 2)) == 1
            assert END in client.said()
            assert_no_text_twice(client)
        users = [one for one in ground.entries() if one.get("message", {}).get("role") == "user"]
        assert json.dumps(users).count("marmalade") == 1
    finally:
        end_daemon(ground.env)


@pytest.mark.parametrize("after_s", points())
async def test_a_prompt_of_version_2_survives_the_daemon(ground: Ground, after_s: float) -> None:
    ground.provider.script(SCRIPT)
    try:
        async with acp_process(ground.env, ground.root, version=2) as (client, _):
            await client.initialize()
            session = await client.new(ground.root)
            prompt = client.prompt(session, WORDS)
            await asyncio.sleep(after_s)
            kill_daemon(ground)
            async with asyncio.timeout(60):
                message = await prompt
                assert message.get("result", {}).get("messageId"), message
            await client.until(lambda: "idle end_turn" in states_of(client))
            assert "idle error" not in states_of(client)
            await result(client.prompt(session, "and again"))
            assert len(responses(client, 2)) == 1
            assert END in client.said()
            assert_no_text_twice(client)
        users = [one for one in ground.entries() if one.get("message", {}).get("role") == "user"]
        assert json.dumps(users).count("marmalade") == 1
    finally:
        end_daemon(ground.env)


@pytest.mark.parametrize("whom", ["shim", "client"])
@pytest.mark.parametrize("after_s", points())
async def test_a_run_goes_on_without_its_client(ground: Ground, whom: str, after_s: float) -> None:
    ground.provider.script(SCRIPT)
    async with daemon_process(ground.env):
        async with acp_process(ground.env, ground.root) as (client, process):
            await client.initialize()
            session = await client.new(ground.root)
            prompt = client.prompt(session, WORDS)
            await client.until(client.said)
            await asyncio.sleep(after_s)
            if whom == "shim":
                process.kill()
            else:
                client.writer.close()
            await process.wait()
            assert len(responses(client, 2)) <= 1
            _ = prompt
        async with acp_process(ground.env, ground.root) as (client, _):
            await client.initialize()
            params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
            await client.request("session/load", params)
            assert client.said("user_message_chunk") == WORDS
            await client.until(lambda: END in client.said())
            assert (await result(client.prompt(session, "and again")))["stopReason"] == "end_turn"
            assert_no_text_twice(client)
