"""All messages of generated conversations are valid by the vendor's JSON Schemas, in both directions."""

from random import Random

import pytest

from tests.support.acp.client import opener, served
from tests.support.acp.conversations import Conversation
from tests.support.acp.schema import MISSING, Judge, schema_path
from tests.support.clients.server import Ground
from tests.support.harness.sizes import at_size
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

CONVERSATIONS = at_size(ci=8, campaign=10_000)


@pytest.mark.skipif(not schema_path().exists(), reason=MISSING)
@pytest.mark.timeout(30 + CONVERSATIONS * 2)
async def test_every_message_of_a_conversation_is_valid(ground: Ground) -> None:
    ground.configure(
        permission={"mode": "ask"}, sandbox="off", retry={"maxRetries": 0}, titles="off"
    )
    judge = Judge()
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        for seed in range(CONVERSATIONS):
            ground.file("a.txt", "one\ntwo\nthree\n")
            async with served(opener(runtime), env=ground.env, client_id=str(seed)) as client:
                await Conversation(client, ground, Random(seed)).hold()  # noqa: S311 - no secret
            problems = [*judge.problems(client.record)]
            assert problems == [], f"conversation {seed}"
