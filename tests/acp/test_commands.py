"""Commands of a client: `/compact`, and the end of a sign-in."""

import json
from typing import Any

import pytest

from tests.support.acp.client import AcpRefused, acp_client, result, states_of
from tests.support.clients.server import Ground, says

Json = dict[str, Any]
LONG = "A long answer. " * 400
SUMMARY: Json = {**says("The summary."), "repeat": -1}
PARTS: Json = {"session": {"notices": {}, "compaction": {}}}


async def test_compact_is_a_command_that_is_answered_when_the_compaction_has_ended(
    ground: Ground,
) -> None:
    ground.configure(compaction={"keepRecentTokens": 10})
    ground.provider.script([says(LONG), says(LONG), SUMMARY])
    async with acp_client(ground) as client:
        await client.initialize(PARTS)
        session = await client.new(ground.root)
        for text in ("one", "two"):
            await result(client.prompt(session, text))
        done: Json = await result(client.prompt(session, "/compact the names"))
        statuses = [one["status"] for one in client.updates if "compactionId" in one]
        (offered,) = (one for one in client.updates if "availableCommands" in one)
        asked = json.dumps([one["body"] for one in ground.provider.requests[2:]])
    assert done["stopReason"] == "end_turn"
    assert statuses == ["in_progress", "completed"]
    assert offered["availableCommands"][0]["name"] == "compact"
    assert "the names" in asked


@pytest.mark.parametrize("version", [1, 2])
async def test_a_conversation_without_an_older_part_is_not_compacted(
    ground: Ground, version: int
) -> None:
    async with acp_client(ground, version=version) as client:
        await client.initialize(PARTS if version == 1 else None)
        session = await client.new(ground.root)
        answer = await result(client.prompt(session, "/compact"))
        notices = [one["title"] for one in client.updates if one["sessionUpdate"] == "notice"]
    assert len(notices) == 1
    assert ("stopReason" in answer, "messageId" in answer) == (version == 1, version == 2)


async def test_compact_in_version_2_is_work_that_ends(ground: Ground) -> None:
    ground.configure(compaction={"keepRecentTokens": 10})
    ground.provider.script([says(LONG), says(LONG), SUMMARY])
    async with acp_client(ground, version=2) as client:
        await client.initialize()
        session = await client.new(ground.root)
        answer: Json = {}
        for number, text in enumerate(("one", "two", "/compact"), 1):
            answer = await result(client.prompt(session, text))
            await client.until(lambda n=number: states_of(client).count("idle end_turn") == n)
        echoes = [one for one in client.updates if one["sessionUpdate"] == "user_message"]
    assert (echoes[-1]["messageId"], len(echoes)) == (answer["messageId"], 3)
    assert states_of(client) == ["running", "idle end_turn"] * 3


@pytest.mark.parametrize(("version", "method"), [(1, "logout"), (2, "auth/logout")])
async def test_logout_deletes_the_stored_keys(ground: Ground, version: int, method: str) -> None:
    stored = ground.dirs.config / "auth.json"
    stored.write_text(json.dumps({"together": {"type": "api_key", "key": "secret-key"}}), "utf-8")
    stored.chmod(0o600)
    async with acp_client(ground, version=version) as client:
        with pytest.raises(AcpRefused, match="no method" if version == 2 else "comes first"):
            await client.request(method, {})
        await client.initialize()
        assert await client.request(method, {}) == {}
    assert "secret-key" not in (stored.read_text("utf-8") if stored.exists() else "")
