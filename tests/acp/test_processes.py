"""`tiller acp` as a client starts it: in the process, and through the daemon."""

from collections.abc import Sequence

import pytest

from tests.support.acp.client import result
from tests.support.acp.processes import acp_process
from tests.support.clients.daemons import daemon_process
from tests.support.clients.server import Ground, says

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


@pytest.mark.parametrize("options", [("--in-process",), ()], ids=["in process", "daemon"])
async def test_a_prompt_is_answered(ground: Ground, options: Sequence[str]) -> None:
    ground.provider.script([says("Hello there.")])
    async with daemon_process(ground.env), acp_process(ground.env, ground.root, options) as served:
        client, process = served
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "hi")))["stopReason"] == "end_turn"
        assert client.said() == "Hello there."
        client.writer.close()
        assert await process.wait() == 0
