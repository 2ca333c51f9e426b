"""MCP servers that a client brings to its sessions: approved before use, contained, and their keys in no log."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.acp.client import AcpRefused, acp_client, result
from tests.support.clients.server import Ground, calls, says, tool_texts
from tests.support.harness.shared import ROOT

KEY = "sk-a-key-of-the-client-0123456789"


def allow(params: dict[str, Any]) -> dict[str, Any]:
    option = next(one for one in params["options"] if one["kind"].startswith("allow"))
    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}


@pytest.mark.timeout(40)
async def test_a_server_of_the_client_is_approved_and_used(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("mcp__workshop__look", {"word": "hi"})), says("done")])
    server = {
        "name": "workshop",
        "command": sys.executable,
        "args": ["-P", str(Path(ROOT) / "tests/support/mcp/mcp_servers.py")],
        "env": [{"name": "WORKSHOP_KEY", "value": KEY}],
    }
    async with acp_client(ground) as client:
        client.answers["session/request_permission"] = allow
        await client.initialize()
        params = {"cwd": str(ground.root), "mcpServers": [server]}
        session = (await client.request("session/new", params))["sessionId"]
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
        asked = client.asked("session/request_permission")
        answers = tool_texts(ground.provider.requests[-1])
    assert answers == ["you said hi"]
    assert "workshop" in asked[0]["toolCall"]["title"]
    assert KEY not in caplog.text
    assert all(KEY not in path.read_text("utf-8") for path in ground.sessions())


@pytest.mark.parametrize(
    "server",
    [
        7,
        {},
        {"name": "x"},
        {"name": "x", "command": KEY, "args": KEY, "env": []},
        {"name": "x", "command": "a", "args": [], "env": [{"name": "K", "value": 7, "x": KEY}]},
        {"name": "x", "type": "sse", "url": f"https://{KEY}", "headers": []},
    ],
)
async def test_a_server_that_is_none_is_refused_without_its_values(
    ground: Ground, server: object
) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        params = {"cwd": str(ground.root), "mcpServers": [server]}
        with pytest.raises(AcpRefused) as refused:
            await client.request("session/new", params)
    assert refused.value.code == -32602
    assert KEY not in str(refused.value)
