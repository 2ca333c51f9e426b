"""Conversations of an ACP client: prompts, updates, permissions, cancellation, in the order that clients depend on."""

from tests.support.acp.client import acp_client, allow_once, result
from tests.support.clients.server import Ground, calls, says


async def test_a_prompt_streams_its_answer_before_its_response(ground: Ground) -> None:
    ground.provider.script([says("Hello there.")])
    async with acp_client(ground) as client:
        answer = await client.initialize()
        assert answer["protocolVersion"] == 1
        session = await client.new(ground.root)
        assert await result(client.prompt(session, "hi")) == {"stopReason": "end_turn"}
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
        assert await result(prompt) == {"stopReason": "cancelled"}
        ground.provider.script([says("again")])
        assert await result(client.prompt(session, "and now")) == {"stopReason": "end_turn"}
    assert client.said().endswith("again")
