"""Conversations of an ACP client: prompts, updates, permissions, cancellation, in the order that clients depend on."""

import json
from typing import Any

import pytest

from tests.support.acp.client import AcpRefused, acp_client, allow_once, opener, result, served
from tests.support.clients.server import Ground, calls, says
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

EDIT = {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}


async def test_a_prompt_streams_its_answer_before_its_response(ground: Ground) -> None:
    ground.provider.script([says("Hello there.")])
    async with acp_client(ground) as client:
        answer = await client.initialize()
        assert answer["protocolVersion"] == 1
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "hi")))["stopReason"] == "end_turn"
        messages = [one for way, one in client.record if way == "<"]
    assert client.said() == "Hello there."
    last_chunk = max(
        number
        for number, one in enumerate(messages)
        if one.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
    )
    responses = [number for number, one in enumerate(messages) if one.get("id") == 2]
    assert responses
    assert responses[0] > last_chunk
    opened = next(number for number, one in enumerate(messages) if one.get("id") == 1)
    assert all(one.get("method") != "session/update" for one in messages[:opened])


async def test_a_permission_is_asked_after_its_call_and_decides(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    async with acp_client(ground) as client:
        client.answers["session/request_permission"] = allow_once
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
        messages = [one for way, one in client.record if way == "<"]
    assert (ground.root / "x").exists()
    asked = next(
        n for n, one in enumerate(messages) if one.get("method") == "session/request_permission"
    )
    told = next(
        n
        for n, one in enumerate(messages)
        if one.get("params", {}).get("update", {}).get("sessionUpdate") == "tool_call"
    )
    assert told < asked
    call = messages[asked]["params"]["toolCall"]
    assert call["toolCallId"] == messages[told]["params"]["update"]["toolCallId"]


async def test_cancel_answers_the_prompt_with_cancelled(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 60"})), says("done")])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        prompt = client.prompt(session, "go")
        await client.until(
            lambda: any(one.get("status") == "in_progress" for one in client.updates)
        )
        client.notify("session/cancel", {"sessionId": session})
        assert (await result(prompt))["stopReason"] == "cancelled"
        ground.provider.script([says("again")])
        assert (await result(client.prompt(session, "and now")))["stopReason"] == "end_turn"
    assert client.said().endswith("again")


async def test_a_second_prompt_steers_and_both_are_answered(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 0.3"})), says("Both.")])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        first = client.prompt(session, "one")
        await client.until(
            lambda: any(one.get("status") == "in_progress" for one in client.updates)
        )
        second = client.prompt(session, "two")
        ends = [await result(one) for one in (first, second)]
        assert [one["stopReason"] for one in ends] == ["end_turn", "end_turn"]
        last = ground.provider.requests[-1]["body"]["messages"]
    assert "two" in json.dumps(last)
    assert "user_message_chunk" not in client.kinds()


async def test_a_stored_session_is_replayed_before_the_response(ground: Ground) -> None:
    ground.file("a.txt", "one\n")
    ground.provider.script(
        [
            {**calls(("edit", EDIT), text="I edit."), "thinking": "Hm."},
            says("Done."),
        ]
    )
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "change it"))
        live = list(client.updates)
    async with acp_client(ground) as client:
        await client.initialize()
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        loaded = await client.request("session/load", params)
        number = len(client.record)
        replayed = list(client.updates)
        assert [way for way, _ in client.record].index("<") < number
        assert set(loaded) == {"modes", "configOptions"}
        listed = await client.request("session/list", {"cwd": str(ground.root)})
        await client.request("session/delete", {"sessionId": session})
        assert (await client.request("session/list", {}))["sessions"] == []
    assert client.record[number - 1][1]["result"] == loaded
    assert [one["sessionId"] for one in listed["sessions"]] == [session]
    texts = [one["content"]["text"] for one in replayed if "chunk" in one["sessionUpdate"]]
    assert texts == ["change it", "Hm.", "I edit.", "Done."]
    diff = {"type": "diff", "path": str(ground.root / "a.txt"), "oldText": "one", "newText": "two"}
    for updates in (live, replayed):
        ended = [one for one in updates if one.get("status") == "completed"]
        assert [one["content"] for one in ended] == [[diff]]


async def test_a_prompt_that_is_withdrawn_at_once_is_answered(ground: Ground) -> None:
    ground.provider.script([{**says("Never."), "repeat": -1}])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        prompt = client.prompt(session, "go")
        client.notify("$/cancel_request", {"requestId": 2})
        assert (await result(prompt))["stopReason"] == "cancelled"


async def test_modes_and_options_are_one_state(ground: Ground) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        params = {"cwd": str(ground.root), "mcpServers": []}
        opened = await client.request("session/new", params)
        session = opened["sessionId"]
        assert opened["modes"]["currentModeId"] == "yolo"
        await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        await client.until(lambda: "current_mode_update" in client.kinds())
        await client.until(lambda: "config_option_update" in client.kinds())
        change = {"sessionId": session, "configId": "mode", "value": "ask"}
        options = (await client.request("session/set_config_option", change))["configOptions"]
        assert next(one for one in options if one["id"] == "mode")["currentValue"] == "ask"
        with pytest.raises(AcpRefused) as refused:
            await client.request("session/set_mode", {"sessionId": session, "modeId": "none"})
    assert refused.value.code == -32602


async def test_a_failed_run_is_an_error_with_its_kind(ground: Ground) -> None:
    ground.configure(retry={"maxRetries": 0})
    ground.provider.script([{"status": 400, "body": {"error": {"message": "bad"}}}])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        with pytest.raises(AcpRefused) as refused:
            await result(client.prompt(session, "go"))
    assert (refused.value.code, refused.value.data["kind"]) == (-32603, "ModelError")


async def test_a_prompt_goes_on_when_its_client_has_gone(ground: Ground) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 0.3; touch x"})), says("Done.")])
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        async with served(opener(runtime), env=ground.env) as client:
            await client.initialize()
            session = await client.new(ground.root)
            _ = client.prompt(session, "go")
            await client.until(
                lambda: any(one.get("status") == "in_progress" for one in client.updates)
            )
        async with served(opener(runtime), env=ground.env, client_id="again") as client:
            await client.initialize()
            params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
            await client.request("session/load", params)
            await client.until(lambda: client.said().endswith("Done."))
    assert (ground.root / "x").exists()


async def test_a_question_is_a_form_where_the_client_has_forms(ground: Ground) -> None:
    questions = [{"question": "Which?", "options": [{"label": "x"}, {"label": "y"}]}]
    ground.provider.script([calls(("ask", {"questions": questions})), says("Fine.")])
    async with acp_client(ground) as client:
        forms: list[dict[str, Any]] = []

        def fill(params: dict[str, Any]) -> dict[str, Any]:
            forms.append(params)
            (name, field), *_ = params["requestedSchema"]["properties"].items()
            return {"action": "accept", "content": {name: field["oneOf"][0]["const"]}}

        client.answers["elicitation/create"] = fill
        await client.initialize({"elicitation": {"form": {}}})
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
    assert len(forms) == 1
