"""The Messages API: what is sent, and what its events mean."""

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
    Usage,
    UserMessage,
)
from agent_core.providers import ModelRequest, ToolDeclaration
from agent_core.providers.wire.anthropic.request import request_body
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, Outcome, ask, model_at
from tests.providers.test_conformance import BEGUN, block, delta, ended

API = "anthropic-messages"
CLAUDE = replace(LAB, api=API, images=True)
CACHED = {"type": "ephemeral"}
PICTURE = Image(mime="image/png", data="aWs=")
SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aWs="}}


CALL = ToolCall(id=ToolCallId("a b"), name="read", arguments={"path": "x"})
OTHER = ToolCall(id=ToolCallId("c"), name="ls", arguments={})
THOUGHTS = (
    Thinking(text="hm", signature="sig"),
    Thinking(text="", signature="sig2"),
    Thinking(text="", signature="enc", redacted=True),
    Thinking(text="unsigned"),
)
SAID = AssistantMessage(
    content=(*THOUGHTS, Text(text=" "), Text(text="ok"), CALL, OTHER),
    api=API,
    provider="lab",
    model="m",
    stop_reason="tool_use",
    at_ms=0,
)
FAILED = ToolResultMessage(
    call_id=CALL.id,
    tool_name="read",
    content=(Text(text="no"), PICTURE),
    is_error=True,
    at_ms=0,
)
TALK = (
    UserMessage(content=(Text(text="look"), PICTURE, Text(text=" ")), at_ms=0),
    SAID,
    FAILED,
    UserMessage(content=(Text(text="go on"),), at_ms=0),
)
SENT = [
    {"role": "user", "content": [{"type": "text", "text": "look"}, SHOWN]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "thinking", "thinking": "", "signature": "sig2"},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "text", "text": "unsigned"},
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "a_b", "name": "read", "input": {"path": "x"}},
            {"type": "tool_use", "id": "c", "name": "ls", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "a_b",
                "content": "no",
                "is_error": True,
            },
            {
                "type": "tool_result",
                "tool_use_id": "c",
                "content": "No result provided",
                "is_error": True,
            },
            {"type": "text", "text": "Attached image(s) from tool result:"},
            SHOWN,
            {"type": "text", "text": "go on", "cache_control": CACHED},
        ],
    },
]


def test_the_whole_request_is_in_the_apis_words():
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    request = ModelRequest(
        system="S",
        messages=TALK,
        tools=(ToolDeclaration(name="read", description="R", parameters=schema),),
        max_tokens=100,
    )
    assert request_body(request, CLAUDE) == {
        "model": "m",
        "max_tokens": 100,
        "stream": True,
        "system": [{"type": "text", "text": "S", "cache_control": CACHED}],
        "tools": [
            {
                "name": "read",
                "description": "R",
                "input_schema": {"type": "object", "properties": {}, "required": []},
                "cache_control": CACHED,
            }
        ],
        "messages": SENT,
    }


@pytest.mark.parametrize(
    ("level", "adaptive", "asked"),
    [
        ("off", False, {"thinking": {"type": "disabled"}}),
        ("high", False, {"thinking": {"type": "enabled", "budget_tokens": 7168}}),
        ("minimal", False, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("off", True, {"thinking": {"type": "disabled"}}),
        (
            "minimal",
            True,
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(level: Any, adaptive: bool, asked: Any):
    facts = replace(CLAUDE, reasoning=True, compat={"forceAdaptiveThinking": adaptive})
    body = request_body(replace(HELLO, thinking=level), facts)
    assert {key: body[key] for key in ("thinking", "output_config") if key in body} == asked


async def test_headers_carry_the_key_and_the_version_and_the_base_url_may_end_in_v1(pools: Pools):
    async with loopback(Reply(sse(BEGUN, *ended("end_turn")))) as server:
        outcome = await ask(model_at(f"{server.url}/v1/", API, pools()))
        (asked,) = server.asked
    assert outcome.error is None
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == "sk-test-very-secret"
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in asked.headers


async def heard(pools: Pools, *events: Any) -> Outcome:
    async with loopback(Reply(sse(*events))) as server:
        return await ask(model_at(server.url, API, pools()))


async def test_usage_is_merged_and_not_added(pools: Pools):
    begun = {"input_tokens": 10, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
    outcome = await heard(
        pools,
        {"type": "message_start", "message": {"id": "x", "usage": {**begun, "output_tokens": 1}}},
        block(0, "text", text="a"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {**begun, "cache_read_input_tokens": None, "output_tokens": 9},
        },
        {"type": "message_stop"},
    )
    assert outcome.message is not None
    assert outcome.message.usage == Usage(input=10, output=9, cache_read=7, cache_write=3)


async def test_thoughts_keep_their_signatures_also_without_a_text(pools: Pools):
    outcome = await heard(
        pools,
        BEGUN,
        block(0, "thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="si"),
        delta(0, "signature_delta", signature="g"),
        block(1, "redacted_thinking", data="enc"),
        block(2, "thinking", thinking="", signature=""),
        block(3, "text", text=""),
        delta(3, "text_delta", text="ok"),
        *ended("end_turn"),
    )
    assert outcome.message is not None
    assert outcome.message.content == (
        Thinking(text="", signature="sig"),
        Thinking(text="", signature="enc", redacted=True),
        Text(text="ok"),
    )


async def test_the_providers_own_tools_are_no_calls_of_ours(pools: Pools):
    outcome = await heard(
        pools,
        BEGUN,
        block(0, "server_tool_use", id="s", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"q":1}'),
        block(1, "web_search_tool_result", content=[]),
        block(2, "text", text="found"),
        {"type": "of the future"},
        *ended("end_turn"),
    )
    assert outcome.message is not None
    assert outcome.message.content == (Text(text="found"),)
    assert outcome.message.stop_reason == "stop"


async def test_a_finish_without_message_stop_is_no_whole_answer(pools: Pools):
    outcome = await heard(pools, BEGUN, block(0, "text", text="a"), ended("end_turn")[0])
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


async def test_an_error_event_is_an_error_with_its_kind(pools: Pools):
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    early = await heard(pools, overloaded)
    late = await heard(pools, BEGUN, block(0, "text", text="a"), overloaded)
    assert early.error is not None
    assert late.error is not None
    assert (early.error.reason, early.error.before_first_byte) == ("server", True)
    assert (late.error.reason, late.error.before_first_byte, late.text) == ("server", False, "a")


async def test_a_refusal_says_why(pools: Pools):
    stop = {"stop_reason": "refusal", "stop_details": {"explanation": "not that"}}
    outcome = await heard(
        pools, BEGUN, {"type": "message_delta", "delta": stop}, {"type": "message_stop"}
    )
    assert outcome.error is not None
    assert (outcome.error.reason, str(outcome.error)) == (
        "refused",
        "lab refused to answer: not that",
    )
