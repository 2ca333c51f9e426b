"""Bad input: every request has one clear answer, and nothing hangs."""

import asyncio
import json
from random import Random
from typing import Any

import pytest

from tests.support.acp.client import AcpClient, AcpRefused, acp_client, result
from tests.support.clients.server import Ground, calls, says
from tiller_server.agent_client.lines import LINE_BYTES


async def raw_answer(client: AcpClient, data: bytes) -> dict[str, Any]:
    """Send bytes and give the next message."""
    seen = len(client.record)
    client.raw(data)
    await client.until(lambda: len(client.record) > seen)
    return client.record[seen][1]


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"NaN", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600, None),
        (b"7", -32600, None),
        (b'{"id":1,"method":"initialize"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":7}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":"a","method":"nope"}', -32601, "a"),
        (b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":[1]}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"session/new","params":{}}', -32602, 4),
        (b'{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{}}', -32600, 4),
    ],
)
async def test_a_broken_line_is_answered_once(
    ground: Ground, line: bytes, code: int, number: object
) -> None:
    async with acp_client(ground) as client:
        answer = await raw_answer(client, line + b"\n")
        assert (answer["error"]["code"], answer["id"]) == (code, number)
        assert (await client.initialize())["protocolVersion"] == 1


async def test_a_line_that_is_too_long_is_refused_and_the_next_is_served(ground: Ground) -> None:
    async with acp_client(ground) as client:
        client.raw(b'"' + b"x" * LINE_BYTES + b'"\n')
        assert (await client.initialize())["protocolVersion"] == 1
        refused = [one for way, one in client.record if way == "<" and "error" in one]
    assert [one["error"]["code"] for one in refused] == [-32700]


async def test_unknown_notifications_and_late_answers_are_ignored(ground: Ground) -> None:
    async with acp_client(ground) as client:
        client.notify("_unknown", {})
        client.notify("session/cancel", {"sessionId": "none"})
        client.notify("$/cancel_request", {"requestId": {"x": 1}})
        client.raw(
            b'{"jsonrpc":"2.0","id":77,"result":{}}\n{"jsonrpc":"2.0","id":null,"result":1}\n'
        )
        assert (await client.initialize())["protocolVersion"] == 1
        assert [way for way, _ in client.record].count("<") == 1


@pytest.mark.parametrize(
    "params",
    [
        {"cwd": "relative", "mcpServers": []},
        {"cwd": "", "mcpServers": []},
        {"cwd": 7, "mcpServers": []},
        {"cwd": "/", "mcpServers": None},
        {"cwd": "/", "mcpServers": [], "additionalDirectories": ["x"]},
        {"cwd": "/a\0b", "mcpServers": []},
    ],
)
async def test_a_session_needs_absolute_folders(ground: Ground, params: dict[str, Any]) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        with pytest.raises(AcpRefused) as refused:
            await client.request("session/new", params)
    assert refused.value.code == -32602


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/delete"])
@pytest.mark.parametrize("session", ["none", "../x", "latest", "new"])
async def test_an_unknown_session_is_not_found(ground: Ground, method: str, session: str) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        params = {"sessionId": session, "cwd": str(ground.root), "mcpServers": []}
        with pytest.raises(AcpRefused) as refused:
            await client.request(method, params)
    assert refused.value.code in {-32002, -32602}


async def test_a_second_initialize_is_refused(ground: Ground) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        with pytest.raises(AcpRefused, match="before"):
            await client.initialize()


@pytest.mark.parametrize(
    "prompt",
    [None, [], "text", [7], [{"type": "text"}], [{"type": "audio", "data": "", "mimeType": "a/b"}]],
)
async def test_a_prompt_without_content_is_refused(ground: Ground, prompt: object) -> None:
    async with acp_client(ground) as client:
        await client.initialize()
        session = await client.new(ground.root)
        with pytest.raises(AcpRefused) as refused:
            await client.request("session/prompt", {"sessionId": session, "prompt": prompt})
    assert refused.value.code == -32602


async def test_a_client_that_never_answers_a_permission_is_refused_in_time(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask", "timeoutS": 0.3}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    async with acp_client(ground) as client:
        client.answers["session/request_permission"] = lambda _: None
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
        withdrawn = client.asked("$/cancel_request")
    assert len(withdrawn) == 1
    assert not (ground.root / "x").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"outcome": None},
        {"outcome": {"outcome": "selected", "optionId": "allow_everything"}},
        {"outcome": {"outcome": "yes"}},
    ],
)
async def test_an_answer_that_is_not_understood_is_a_no(
    ground: Ground, answer: dict[str, Any]
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    async with acp_client(ground) as client:
        client.answers["session/request_permission"] = lambda _: answer
        await client.initialize()
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
    assert not (ground.root / "x").exists()


async def test_random_bytes_end_nothing(ground: Ground) -> None:
    random = Random(27)  # noqa: S311 - no secret
    message = json.dumps(
        {"jsonrpc": "2.0", "id": 5, "method": "session/new", "params": {"cwd": "/"}}
    )
    async with acp_client(ground) as client:
        for _ in range(200):
            data = bytearray(message.encode())
            for _ in range(random.randint(1, 6)):
                data[random.randrange(len(data))] = random.randrange(256)
            client.raw(bytes(data) + b"\n")
        client.raw(b"\n")
        async with asyncio.timeout(10):
            assert (await client.initialize())["protocolVersion"] == 1
