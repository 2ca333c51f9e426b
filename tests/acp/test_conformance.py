"""All messages of generated conversations are valid by the vendor's JSON Schemas, in both directions."""

from random import Random

import pytest

from tests.support.acp.client import opener, served, served_version
from tests.support.acp.conversations import Conversation, Version2Conversation
from tests.support.acp.schema import MISSING, Judge, schema_path
from tests.support.clients.server import Ground
from tests.support.harness.sizes import at_size
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

CONVERSATIONS = at_size(ci=6, campaign=250)
"""Conversations of a part."""
PARTS = [
    *((1, part) for part in range(at_size(ci=1, campaign=40))),
    *((2, part) for part in range(at_size(ci=1, campaign=8))),
]
"""Parts by version of the protocol."""
KINDS = {1: Conversation, 2: Version2Conversation}


@pytest.mark.skipif(not schema_path(2).exists(), reason=MISSING)
@pytest.mark.timeout(30 + CONVERSATIONS * 4)
@pytest.mark.parametrize(("version", "part"), PARTS)
async def test_every_message_of_a_conversation_is_valid(
    ground: Ground, version: int, part: int
) -> None:
    ground.configure(
        permission={"mode": "ask"}, sandbox="off", retry={"maxRetries": 0}, titles="off"
    )
    judge = Judge(version)
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        for seed in range(part * CONVERSATIONS, (part + 1) * CONVERSATIONS):
            ground.file("a.txt", "one\ntwo\nthree\n")
            async with served(
                opener(runtime), env=ground.env, client_id=str(seed), version=version
            ) as client:
                random = Random(seed)  # noqa: S311 - no secret
                await KINDS[version](client, ground, random).hold()
            problems = [*judge.problems(client.record)]
            assert problems == [], f"conversation {seed}"
            assert served_version(client) == version
    assert judge.checked > 10 * CONVERSATIONS
