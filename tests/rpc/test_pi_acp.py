"""pi-acp, which serves editors that speak ACP and drives pi, drives Tiller in the place of pi."""

import json

import pytest

from tests.rpc.test_real_clients import environment, starter
from tests.support.acp.client import allow_once, result
from tests.support.acp.processes import agent_process
from tests.support.clients.daemons import daemon_process
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.acp_clients import NODE, npm_client

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
NAME = ".vscode/tasks.json"
"""Programs that are named in it run without a question, so that an edit of it asks."""


async def test_an_editor_behind_pi_acp_prompts_permits_cancels_and_resumes(ground: Ground) -> None:
    argv = (str(NODE), str(npm_client("pi-acp") / "dist" / "index.js"))
    home = ground.dirs.home
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    file = ground.file(NAME, "one\ntwo\n")
    ground.provider.script(
        [
            says("Hello there."),
            calls(("read", {"path": NAME})),
            calls(("edit", {"path": NAME, "edits": [{"oldText": "two", "newText": "2"}]})),
            says("Edited."),
            calls(("bash", {"command": "sleep 60"})),
            says("Again."),
        ]
    )
    pi = starter("sh", home / "pi")
    settings = home / ".pi" / "agent" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"sessionDir": str(ground.dirs.data / "sessions")}))
    env = {**environment(ground), "HOME": str(home), "PI_ACP_PI_COMMAND": str(pi)}
    params = {"cwd": str(ground.root), "mcpServers": []}
    async with daemon_process(ground.env):
        async with agent_process(argv, env, ground.root) as (client, _):
            client.answers["session/request_permission"] = allow_once
            await client.initialize()
            session = (await client.request("session/new", params))["sessionId"]
            assert (await result(client.prompt(session, "hello")))["stopReason"] == "end_turn"
            assert "Hello there." in client.said()
            assert (await result(client.prompt(session, "edit")))["stopReason"] == "end_turn"
            assert len(client.asked("session/request_permission")) == 1
            assert file.read_text() == "one\n2\n"
            sleeping = client.prompt(session, "sleep")
            await client.until(lambda: "sleep 60" in str(client.updates))
            client.notify("session/cancel", {"sessionId": session})
            assert (await result(sleeping))["stopReason"] == "cancelled"
        async with agent_process(argv, env, ground.root) as (client, _):
            client.answers["session/request_permission"] = allow_once
            await client.initialize()
            await client.request("session/load", {**params, "sessionId": session})
            assert client.said("user_message_chunk") == "helloeditsleep"
            assert (await result(client.prompt(session, "again")))["stopReason"] == "end_turn"
            assert client.said().endswith("Again.")
