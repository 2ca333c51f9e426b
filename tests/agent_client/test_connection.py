"""A front end in the process of the server: requests in both directions, and the end."""

import pytest

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object
from tests.support.clients.server import Ground, calls, prompt, says
from tiller_server.agent_client.connection import AgentRefused, RequestHandler
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig


async def test_a_front_end_asks_and_is_asked(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    asked: list[JsonObject] = []

    async def allow(params: JsonObject) -> JsonObject:
        asked.append(params)
        return {"option": "allowOnce"}

    handlers: dict[str, RequestHandler] = {"agent/permission": allow}
    async with Runtime(ServerConfig(env=dict(ground.env), home=ground.dirs.home)) as runtime:
        async with attached(App(runtime), handlers=handlers) as client:
            agent: JsonObject = {
                "client": {"name": "test", "version": "1", "role": "panel"},
                "capabilities": {"v": 1, "permission": {}},
            }
            params: JsonObject = {
                "processId": None,
                "rootUri": ground.root.as_uri(),
                "capabilities": {},
                "initializationOptions": {"agent": agent},
            }
            assert "capabilities" in as_object(await client.request("initialize", params))
            client.notify("initialized", {})
            _ = await client.request("agent/session/open", {})
            result = await client.request("agent/prompt", prompt("go", wait=True))
            with pytest.raises(AgentRefused) as refused:
                _ = await client.request("agent/session/open", {"session": "../x"})
        with pytest.raises(AgentRefused, match="has ended"):
            _ = await client.request("agent/session/list", {})
    assert as_object(result)["status"] == "completed"
    assert len(asked) == 1
    assert (ground.root / "x").exists()
    assert refused.value.code is not None
