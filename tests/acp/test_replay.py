"""A session that is loaded shows what it showed before: prompts, answers and tool calls."""

from collections.abc import Sequence

import pytest

from tests.support.acp.client import AcpRefused, Json, acp_client, result
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


def ids_of(updates: Sequence[Json]) -> set[tuple[str, str]]:
    """Return the ids of answers and tool calls, with the name of the tool."""
    names = ("toolCallId", "messageId")
    return {
        (next(one[name] for name in names if name in one), str(one.get("name", "")))
        for one in updates
        if one["sessionUpdate"] in {"tool_call", "agent_message_chunk"}
    }


async def test_answers_and_tool_calls_have_the_same_ids_live_and_in_a_replay(
    ground: Ground,
) -> None:
    ground.file("a.txt", "one\n")
    read, listed = ("read", {"path": "a.txt"}), ("ls", {"path": "."})
    ground.provider.script(
        [
            {**calls(read, listed), "thinking": "First both."},
            calls(read, text="Once more."),
            says("Done."),
        ]
    )
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        live = [*client.updates]
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        await client.request("session/load", params)
        replayed = client.updates[len(live) :]
    assert sorted(name for _, name in ids_of(live)) == ["", "", "ls", "read", "read"]
    assert ids_of(replayed) == ids_of(live)


@pytest.mark.parametrize("kept", [0, 20])
async def test_a_session_whose_file_was_begun_when_the_daemon_was_killed_is_made_anew(
    ground: Ground, kept: int
) -> None:
    ground.provider.script([says("Hello."), says("Again.")])
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "hello"))
    (file,) = ground.sessions()
    with file.open("r+b") as cut:
        cut.truncate(kept)
    params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
    async with acp_client(ground, client_id="next") as client:
        await client.initialize()
        with pytest.raises(AcpRefused, match="has the name of a session"):
            await client.request("session/resume", params)
        again = {**params, "_meta": {"tiller.dev/recreate": True}}
        await client.request("session/resume", again)
        assert (await result(client.prompt(session, "hello")))["stopReason"] == "end_turn"
        assert client.said() == "Again."


async def test_a_file_that_is_replaced_is_a_difference_live_and_in_a_replay(ground: Ground) -> None:
    path = ground.file("a.txt", "one\nsame\n")
    ground.provider.script(
        [calls(("write", {"path": "a.txt", "content": "two\nsame\n"})), says("Done.")]
    )
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        await client.request("session/load", params)
        contents = [one["content"] for one in client.updates if one.get("status") == "completed"]
    texts = {"oldText": "one\nsame", "newText": "two\nsame"}
    assert contents == [[{"type": "diff", "path": str(path), **texts}]] * 2
