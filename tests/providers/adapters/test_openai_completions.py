"""Chat Completions: what is sent, and the quirks of those who speak it."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.adapters.openai_completions.request import request_body
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, ask, model_at

READ = ToolDeclaration(
    name="read", description="Reads.", parameters={"type": "object", "properties": {}}
)
READ_SENT = {
    "name": "read",
    "description": "Reads.",
    "parameters": {"type": "object", "properties": {}},
}
API = "openai-completions"
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def said(*content: Any, facts: ModelInfo = LAB) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        api=facts.api,
        provider=facts.provider,
        model=facts.id,
        stop_reason="stop",
        at_ms=0,
    )


def user(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),), at_ms=0)


def test_a_local_server_gets_the_plain_form():
    picture = Image(mime="image/png", data="aWs=")
    call = ToolCall(id=ToolCallId("c1|fc_1"), name="read", arguments={"path": "ä"})
    request = ModelRequest(
        system="Be brief.",
        messages=(
            UserMessage(content=(Text(text="look"), picture), at_ms=0),
            said(Thinking(text="hm", signature="reasoning"), Text(text="ok"), call),
            ToolResultMessage(call_id=call.id, tool_name="read", content=(picture,), at_ms=0),
        ),
        tools=(READ,),
        thinking="high",
        max_tokens=500,
        session="s1",
    )
    assert request_body(request, replace(LAB, images=True)) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWs="}},
                ],
            },
            {
                "role": "assistant",
                "content": "ok",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path":"ä"}'},
                    }
                ],
                "reasoning": "hm",
            },
            {"role": "tool", "tool_call_id": "c1", "content": "(see attached image)"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Attached image(s) from tool result:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aWs="}},
                ],
            },
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 500,
        "tools": [{"type": "function", "function": READ_SENT}],
    }


def test_openai_itself_gets_its_own_words():
    facts = replace(LAB, base_url="https://api.openai.com/v1", reasoning=True)
    request = ModelRequest(
        system="S", messages=(user("x"),), tools=(READ,), thinking="high", session="s" * 80
    )
    body = request_body(request, facts)
    assert body["messages"] == [
        {"role": "developer", "content": "S"},
        {"role": "user", "content": "x"},
    ]
    assert "max_tokens" not in body
    told = {key: body[key] for key in ("max_completion_tokens", "store", "reasoning_effort")}
    assert told == {"max_completion_tokens": 8192, "store": False, "reasoning_effort": "high"}
    assert body["prompt_cache_key"] == "s" * 64


@pytest.mark.parametrize(
    ("url", "compat", "on", "off"),
    [
        (
            "https://openrouter.ai/api/v1",
            {},
            {"reasoning": {"effort": "low"}},
            {"reasoning": {"effort": "none"}},
        ),
        (
            "https://api.deepseek.com",
            {},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
            {"thinking": {"type": "disabled"}},
        ),
        (
            "https://api.z.ai/api/paas/v4",
            {},
            {"thinking": {"type": "enabled", "clear_thinking": False}},
            {"thinking": {"type": "disabled", "clear_thinking": False}},
        ),
        ("http://127.0.0.1/v1", {}, {"reasoning_effort": "low"}, {}),
        ("http://127.0.0.1/v1", {"supportsReasoningEffort": False}, {}, {}),
        (
            "http://127.0.0.1/v1",
            {"thinkingFormat": "qwen"},
            {"enable_thinking": True},
            {"enable_thinking": False},
        ),
        ("https://api.x.ai/v1", {}, {}, {}),
    ],
)
def test_thinking_is_asked_for_in_the_servers_words(
    url: str, compat: dict[str, Any], on: dict[str, Any], off: dict[str, Any]
):
    facts = replace(LAB, base_url=url, compat=compat, reasoning=True)
    keys = {"reasoning", "thinking", "reasoning_effort", "enable_thinking"}
    for level, wanted in (("low", on), ("off", off)):
        body = request_body(replace(HELLO, thinking=level), facts)
        assert {key: value for key, value in body.items() if key in keys} == wanted


def test_claude_behind_a_gateway_is_told_what_to_cache():
    facts = replace(LAB, id="anthropic/claude-x", base_url="https://openrouter.ai/api/v1")
    call = ToolCall(id=ToolCallId("c1"), name="read", arguments={})
    result = ToolResultMessage(
        call_id=call.id, tool_name="read", content=(Text(text="there"),), at_ms=0
    )
    request = replace(HELLO, messages=(user("a"), said(call), result))
    mark = {"cache_control": {"type": "ephemeral"}}
    body: Any = request_body(request, facts)
    contents = [message["content"] for message in body["messages"]]
    assert contents == [
        [{"type": "text", "text": "Be brief.", **mark}],
        "a",
        None,
        [{"type": "text", "text": "there", **mark}],
    ]
    plain: Any = request_body(request, replace(facts, compat={"cacheControlFormat": ""}))
    assert "cache_control" not in str(plain)


@pytest.mark.parametrize(
    ("host", "sent"), [("api.groq.com", "low"), ("api.cerebras.ai", "low"), ("lab", "minimal")]
)
def test_the_least_effort_is_one_that_the_server_knows(host: str, sent: str):
    facts = replace(LAB, base_url=f"https://{host}/v1", reasoning=True)
    body = request_body(replace(HELLO, thinking="minimal"), facts)
    assert body["reasoning_effort"] == sent


async def test_copilot_is_told_who_speaks_and_whether_there_is_anything_to_see(pools: Pools):
    call = ToolCall(id=ToolCallId("c1"), name="read", arguments={})
    picture = Image(mime="image/png", data="aWs=")
    result = ToolResultMessage(call_id=call.id, tool_name="read", content=(picture,), at_ms=0)
    going_on = replace(HELLO, messages=(user("a"), said(call), result))
    wanted = [("user", None), ("agent", "true"), (None, None)]
    async with loopback(*[Reply(sse(END, "[DONE]"))] * 3) as server:
        copilot = f"{server.url}/githubcopilot.com"
        for url, request in ((copilot, HELLO), (copilot, going_on), (server.url, going_on)):
            await ask(model_at(url, API, pools(), images=True), request)
    assert [
        (asked.headers.get("x-initiator"), asked.headers.get("copilot-vision-request"))
        for asked in server.asked
    ] == wanted


def test_deepseek_gets_a_reasoning_field_with_every_answer():
    facts = replace(LAB, base_url="https://api.deepseek.com")
    body = request_body(replace(HELLO, messages=(user("a"), said(Text(text="b")))), facts)
    assert body["messages"][-1] == {"role": "assistant", "content": "b", "reasoning_content": ""}  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType] - JSON
