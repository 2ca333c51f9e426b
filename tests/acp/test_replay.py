"""A session that is loaded shows what it showed before: prompts, answers and tool calls."""

from tests.support.acp.client import acp_client, result
from tests.support.clients.server import Ground, calls, says


async def test_a_loaded_session_shows_its_answers_and_tool_calls(ground: Ground) -> None:
    ground.file("a.txt", "one\n")
    ground.provider.script([says("Hello."), calls(("read", {"path": "a.txt"})), says("Read.")])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "hello"))
        await result(client.prompt(session, "read"))
        live = [one for one in client.updates if one.get("toolCallId")]
        seen = len(client.updates)
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        await client.request("session/load", params)
        replayed = client.updates[seen:]
    chunks = [
        (one["sessionUpdate"], one["content"]["text"])
        for one in replayed
        if one["sessionUpdate"].endswith("message_chunk")
    ]
    assert chunks == [
        ("user_message_chunk", "hello"),
        ("agent_message_chunk", "Hello."),
        ("user_message_chunk", "read"),
        ("agent_message_chunk", "Read."),
    ]
    tools = [one for one in replayed if one.get("toolCallId")]
    assert tools[-1]["status"] == live[-1]["status"] == "completed"
