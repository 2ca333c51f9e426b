"""Version 2 of ACP, the draft: negotiation, the life of a prompt, states, permissions, differences, replay."""

from contextlib import suppress
from typing import Any

import pytest

from tests.support.acp.client import (
    AcpRefused,
    acp_client,
    allow_once,
    opener,
    result,
    served,
    states_of,
)
from tests.support.clients.server import Ground, calls, says
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

Json = dict[str, Any]
NEW_FILE = "new file mode 100644\n--- /dev/null\n"
NEW_TEXT = "@@ -0,0 +1,1 @@\n+new\n\\ No newline at end of file\n"
EDIT = {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}


def messages(updates: list[Json], kind: str) -> list[tuple[str, list[str]]]:
    """The ids and texts of whole messages of a kind."""
    return [
        (one["messageId"], [part["text"] for part in one["content"]])
        for one in updates
        if one["sessionUpdate"] == kind
    ]


@pytest.mark.parametrize(
    ("newest", "offered", "spoken"), [(1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 2), (2, 3, 2)]
)
async def test_the_version_is_the_newest_that_both_speak(
    ground: Ground, newest: int, offered: int, spoken: int
) -> None:
    async with acp_client(ground, version=newest) as client:
        info = {"name": "scripted", "version": "1"}
        params = {"protocolVersion": offered, "clientInfo": info, "info": info}
        answer = await client.request("initialize", params)
    assert answer["protocolVersion"] == spoken
    assert ("agentInfo" in answer, "info" in answer) == (spoken == 1, spoken == 2)


async def test_a_prompt_is_answered_when_it_is_in_the_conversation(ground: Ground) -> None:
    ground.provider.script(
        [calls(("bash", {"command": "sleep 0.3"}), text="First."), says("Both.")]
    )
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        first = await result(client.prompt(session, "one"))
        await client.until(
            lambda: any(one.get("status") == "in_progress" for one in client.updates)
        )
        second = await result(client.prompt(session, "two"))
        await client.until(lambda: "idle end_turn" in states_of(client))
        assert client.said() == "First.Both."
        assert states_of(client) == ["running", "idle end_turn"]
        live = messages(client.updates, "user_message")
        seen = len(client.updates)
        params = {"sessionId": session, "cwd": str(ground.root), "replayFrom": {"type": "start"}}
        described = await client.request("session/resume", params)
        replayed = client.updates[seen:]
    assert live == [(first["messageId"], ["one"]), (second["messageId"], ["two"])]
    assert messages(replayed, "user_message") == live
    assert [texts for _, texts in messages(replayed, "agent_message")] == [["First."], ["Both."]]
    assert replayed[-1] == {"sessionUpdate": "state_update", "state": "idle"}
    assert set(described) == {"configOptions"}


async def test_a_session_that_waits_for_its_user_requires_action(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.file("a.txt", "one\n")
    ground.provider.script(
        [
            calls(("bash", {"command": "touch x"})),
            calls(("write", {"path": "new.txt", "content": "new"}), ("edit", EDIT)),
            calls(("write", {"path": "a.txt", "content": "three\n"})),
            says("done"),
        ]
    )
    async with acp_client(ground, version=2) as client:
        client.answers["session/request_permission"] = allow_once
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        await client.until(lambda: "idle end_turn" in states_of(client))
        asked = client.asked("session/request_permission")
        ended = [one for one in client.updates if one.get("status") == "completed"]
    subject = asked[0]["subject"]
    assert (subject["type"], subject["command"], subject["cwd"]) == (
        "command",
        "touch x",
        str(ground.root),
    )
    assert subject["toolCallId"] == ended[0]["toolCallId"]
    assert states_of(client)[:3] == ["running", "requires_action", "running"]
    root = str(ground.root).lstrip("/")
    assert [one["content"] for one in ended[1:]] == [
        [
            {
                "type": "diff",
                "changes": [{"operation": operation, "path": str(ground.root / path)}],
                "patch": {"format": "git_patch", "text": text},
            }
        ]
        for operation, path, text in [
            (
                "add",
                "new.txt",
                f"diff --git a/{root}/new.txt b/{root}/new.txt\n{NEW_FILE}+++ b/{root}/new.txt\n{NEW_TEXT}",
            ),
            (
                "modify",
                "a.txt",
                "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n",
            ),
            (
                "modify",
                "a.txt",
                "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-two\n+three\n",
            ),
        ]
    ]


async def test_cancel_ends_the_work_and_refuses_what_waits(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 60"})), says("done")])
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        await client.until(
            lambda: any(one.get("status") == "in_progress" for one in client.updates)
        )
        waiting = client.prompt(session, "and then")
        client.notify("session/cancel", {"sessionId": session})
        with pytest.raises(AcpRefused) as refused:
            await result(waiting)
        await client.until(lambda: "idle cancelled" in states_of(client))
        calls_ended = [
            one["status"] for one in client.updates if "content" in one and "status" in one
        ]
    assert refused.value.code == -32800
    assert calls_ended == ["cancelled"]


async def test_a_prompt_that_waits_can_be_withdrawn(ground: Ground) -> None:
    command = "until [ -e withdrawn ]; do sleep 0.05; done"
    ground.provider.script([calls(("bash", {"command": command})), says("Done.")])
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        await client.until(
            lambda: any(one.get("status") == "in_progress" for one in client.updates)
        )
        number = client.number
        waiting = client.prompt(session, "and then")
        await client.request("session/list", {})
        client.notify("$/cancel_request", {"requestId": number})
        with pytest.raises(AcpRefused) as refused:
            await result(waiting)
        _ = ground.file("withdrawn", "")
        await client.until(lambda: "idle end_turn" in states_of(client))
    assert refused.value.code == -32800
    assert len(messages(client.updates, "user_message")) == 1


async def test_prompts_beside_a_run_that_fails_are_answered(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0})
    failure = {"status": 400, "body": {"error": {"message": "bad"}}}
    ground.provider.script([failure, {**says("Fine."), "repeat": -1}])
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        prompts = [client.prompt(session, text) for text in ("one", "two", "three")]
        for prompt in prompts:
            with suppress(AcpRefused):
                await result(prompt)
        await result(client.prompt(session, "four"))
        await client.until(lambda: states_of(client)[-1] == "idle end_turn")
    assert client.said().endswith("Fine.")


async def test_a_failed_run_is_a_state_with_its_error(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0})
    ground.provider.script([{"status": 400, "body": {"error": {"message": "bad"}}}])
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["messageId"]
        await client.until(lambda: "idle error" in states_of(client))
        with pytest.raises(AcpRefused) as refused:
            await client.request("session/prompt", {"sessionId": session, "prompt": []})
    assert client.updates[-1]["error"]["data"]["kind"] == "ModelError"
    assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("method", "more", "code"),
    [
        ("session/load", {}, -32601),
        ("session/set_mode", {"modeId": "plan"}, -32601),
        ("authenticate", {"methodId": "x"}, -32601),
        ("session/resume", {"replayFrom": {"type": "middle"}}, -32602),
        ("session/resume", {"replayFrom": 3}, -32602),
        ("session/set_config_option", {"configId": "mode", "value": "plan"}, -32602),
        (
            "session/set_config_option",
            {"configId": "mode", "type": "boolean", "value": "a"},
            -32602,
        ),
        ("session/set_config_option", {"configId": "none", "type": "id", "value": "a"}, -32602),
        ("auth/login", {"methodId": 3}, -32602),
    ],
)
async def test_a_request_that_does_not_fit_is_refused(
    ground: Ground, method: str, more: Json, code: int
) -> None:
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        params = {"sessionId": session, "cwd": str(ground.root), **more}
        with pytest.raises(AcpRefused) as refused:
            await client.request(method, params)
        assert refused.value.code == code
        assert await client.request("session/close", {"sessionId": session}) == {}
        assert await client.request("session/close", {"sessionId": session}) == {}


async def test_a_client_that_joins_during_a_run_gets_the_state_running(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 0.4"})), says("Done.")])
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        agent = opener(runtime)
        async with (
            served(agent, env=ground.env, client_id="a", version=2) as first,
            served(agent, env=ground.env, client_id="b", version=2) as second,
        ):
            await first.initialize()
            session = await first.new(ground.root)
            await result(first.prompt(session, "go"))
            await first.until(
                lambda: any(one.get("status") == "in_progress" for one in first.updates)
            )
            await second.initialize()
            opened = {"sessionId": session, "cwd": str(ground.root)}
            await second.request("session/resume", opened)
            assert states_of(second) == ["running"]
            await second.until(lambda: states_of(second)[-1] == "idle end_turn")
            assert second.said() == "Done."


async def test_a_run_that_ended_with_its_daemon_has_an_end_for_a_client_that_resumes(
    ground: Ground,
) -> None:
    ground.provider.script([says("Done.")])
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        agent = opener(runtime)
        async with (
            served(agent, env=ground.env, client_id="a", version=2) as first,
            served(agent, env=ground.env, client_id="b", version=2) as second,
        ):
            await first.initialize()
            session = await first.new(ground.root)
            await result(first.prompt(session, "go"))
            await first.until(lambda: "idle end_turn" in states_of(first))
            (run,) = {
                one["_meta"]["tiller.dev/run"]
                for one in first.updates
                if one["sessionUpdate"] == "state_update" and "_meta" in one
            }
            await second.initialize()
            # As `tiller acp` resumes it after the end of a daemon: with the place in the events of that daemon.
            meta = {"tiller.dev/seq": 7, "tiller.dev/epoch": "former", "tiller.dev/continue": run}
            resumed = {"sessionId": session, "cwd": str(ground.root), "_meta": meta}
            await second.request("session/resume", resumed)
            assert states_of(second) == ["idle end_turn"]
