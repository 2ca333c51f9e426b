"""Bedrock: what is sent, and where."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

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
from agent_core.providers.adapters.bedrock_converse.model import region_of, url_of
from agent_core.providers.adapters.bedrock_converse.request import request_body
from tests.providers.replay import HELLO, LAB

API = "bedrock-converse-stream"
CLAUDE = replace(LAB, api=API, images=True, id="us.anthropic.claude-sonnet-4-5-20250929-v1:0")
TITAN = replace(CLAUDE, id="amazon.titan-text-express-v1")
POINT = {"cachePoint": {"type": "default"}}
PICTURE = Image(mime="image/jpeg", data="aWs=")
SHOWN = {"image": {"format": "jpeg", "source": {"bytes": "aWs="}}}
CALL = ToolCall(id=ToolCallId("a b"), name="read", arguments={"path": "x"})
OTHER = ToolCall(id=ToolCallId("c" * 70), name="ls", arguments={})
SAID = AssistantMessage(
    content=(
        Thinking(text="hm", signature="sig"),
        Thinking(text="", signature="ZW5j", redacted=True),
        Thinking(text="unsigned"),
        Text(text=" "),
        Text(text="ok"),
        CALL,
        OTHER,
    ),
    api=API,
    provider="lab",
    model=CLAUDE.id,
    stop_reason="tool_use",
    at_ms=0,
)
RESULTS = (
    ToolResultMessage(
        call_id=CALL.id, tool_name="read", content=(Text(text="no"),), is_error=True, at_ms=0
    ),
    ToolResultMessage(call_id=OTHER.id, tool_name="ls", content=(PICTURE,), at_ms=0),
)
TALK = (
    UserMessage(content=(Text(text="look"), PICTURE, Text(text=" ")), at_ms=0),
    SAID,
    *RESULTS,
    UserMessage(content=(Text(text="go on"),), at_ms=0),
)
READ = ToolDeclaration(name="read", description="R", parameters={"type": "object"})


def sent(request: ModelRequest, facts: ModelInfo) -> Any:
    return request_body(request, facts)


def test_the_whole_request_is_in_the_apis_words():
    request = ModelRequest(system="S", messages=TALK, tools=(READ,), max_tokens=100)
    assert sent(request, CLAUDE) == {
        "system": [{"text": "S"}, POINT],
        "inferenceConfig": {"maxTokens": 100},
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "read",
                        "description": "R",
                        "inputSchema": {"json": {"type": "object"}},
                    }
                },
                POINT,
            ]
        },
        "messages": [
            {"role": "user", "content": [{"text": "look"}, SHOWN]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                    {"reasoningContent": {"redactedContent": "ZW5j"}},
                    {"text": "unsigned"},
                    {"text": "ok"},
                    {"toolUse": {"toolUseId": "a_b", "name": "read", "input": {"path": "x"}}},
                    {"toolUse": {"toolUseId": "c" * 64, "name": "ls", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "a_b",
                            "content": [{"text": "no"}],
                            "status": "error",
                        }
                    },
                    {
                        "toolResult": {
                            "toolUseId": "c" * 64,
                            "content": [{"text": "(see attached image)"}, SHOWN],
                            "status": "success",
                        }
                    },
                    {"text": "go on"},
                    POINT,
                ],
            },
        ],
    }


def test_a_model_that_is_not_known_to_cache_gets_no_cache_points():
    request = ModelRequest(system="S", messages=TALK, tools=(READ,))
    assert "cachePoint" not in str(sent(request, TITAN))
    told = replace(TITAN, compat={"cachePoints": True})
    assert "cachePoint" in str(sent(request, told))
    refused = replace(CLAUDE, compat={"cachePoints": False})
    assert "cachePoint" not in str(sent(request, refused))


def test_nova_caches_words_and_no_tools():
    body = sent(
        ModelRequest(system="S", messages=TALK, tools=(READ,)),
        replace(CLAUDE, id="amazon.nova-lite-v1:0"),
    )
    assert POINT in body["system"]
    assert POINT not in body["toolConfig"]["tools"]


def test_a_conversation_with_calls_declares_their_tools_also_when_none_is_offered():
    body = sent(ModelRequest(system="", messages=TALK), TITAN)
    specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]
    assert [spec["name"] for spec in specs] == ["read", "ls"]
    assert all(spec["description"] for spec in specs)


def test_either_side_speaks_in_turn_and_never_says_nothing():
    blank = UserMessage(content=(Text(text=" "),), at_ms=0)
    alone = sent(ModelRequest(system=" ", messages=(blank,)), TITAN)
    assert alone["messages"] == [{"role": "user", "content": [{"text": "<empty>"}]}]
    assert "system" not in alone
    twice = replace(SAID, content=(Text(text="one"),), stop_reason="length")
    answers = sent(ModelRequest(system="", messages=(TALK[0], twice, twice, blank, TALK[0])), TITAN)
    assert [message["role"] for message in answers["messages"]] == ["user", "assistant", "user"]
    assert answers["messages"][1]["content"] == [{"text": "one"}, {"text": "one"}]


def test_a_picture_of_a_kind_that_bedrock_does_not_take_is_named():
    words = UserMessage(content=(Image(mime="image/bmp", data="aWs="),), at_ms=0)
    (message,) = sent(ModelRequest(system="", messages=(words,)), CLAUDE)["messages"]
    assert message["content"][0] == {"text": "(image omitted: Bedrock takes no image/bmp)"}


@pytest.mark.parametrize(
    ("model", "compat", "level", "asked"),
    [
        ("anthropic.claude-sonnet-4", {}, "off", None),
        (
            "anthropic.claude-sonnet-4",
            {},
            "high",
            {"thinking": {"type": "enabled", "budget_tokens": 7168}},
        ),
        (
            "anthropic.claude-opus-5-5",
            {"forceAdaptiveThinking": True},
            "minimal",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
        (
            "anthropic.claude-opus-5-5",
            {"forceAdaptiveThinking": True},
            "off",
            {"thinking": {"type": "disabled"}},
        ),
        ("openai.gpt-oss-120b-1:0", {}, "medium", {"reasoning_effort": "medium"}),
        ("openai.gpt-oss-120b-1:0", {}, "off", None),
        ("openai.gpt-6", {}, "minimal", {"reasoning": {"effort": "low"}}),
        ("amazon.nova-lite-v1:0", {}, "high", None),
    ],
)
def test_thinking_is_asked_for_in_its_makers_words(
    model: str, compat: Any, level: Any, asked: object
):
    facts = replace(CLAUDE, id=model, reasoning=True, compat=compat)
    body = sent(replace(HELLO, thinking=level), facts)
    assert body.get("additionalModelRequestFields") == asked


def test_thinking_between_calls_is_asked_for_where_there_are_tools():
    facts = replace(CLAUDE, reasoning=True)
    body = sent(replace(HELLO, thinking="low", tools=(READ,)), facts)
    fields = body["additionalModelRequestFields"]
    assert fields["anthropic_beta"] == ["interleaved-thinking-2025-05-14"]


ARN = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"


@pytest.mark.parametrize(
    ("model", "base", "compat", "region", "url"),
    [
        ("m:0", "", {}, None, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m%3A0"),
        (
            "m",
            "",
            {"region": "us-west-2"},
            "us-west-2",
            "https://bedrock-runtime.us-west-2.amazonaws.com/model/m",
        ),
        (
            ARN,
            "https://bedrock-runtime.us-east-1.amazonaws.com",
            {"region": "us-west-2"},
            "eu-west-1",
            f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{quote(ARN, safe='')}",
        ),
        (
            "m",
            "https://bedrock-runtime.ap-south-1.amazonaws.com/",
            {},
            "ap-south-1",
            "https://bedrock-runtime.ap-south-1.amazonaws.com/model/m",
        ),
        (
            "m",
            "",
            {"region": "cn-north-1"},
            "cn-north-1",
            "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m",
        ),
        ("m", "http://proxy/x/", {"region": "r"}, "r", "http://proxy/x/model/m"),
        (
            "m",
            "https://bedrock-runtime-fips.us-east-2.amazonaws.com",
            {},
            "us-east-2",
            "https://bedrock-runtime-fips.us-east-2.amazonaws.com/model/m",
        ),
        (
            "m",
            "https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com",
            {},
            "eu-west-1",
            "https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com/model/m",
        ),
    ],
    ids=["nobody says", "chosen", "arn", "address", "china", "proxy", "fips", "private"],
)
def test_the_region_is_the_arns_then_the_chosen_one_then_the_addresss(
    model: str, base: str, compat: Any, region: str | None, url: str
):
    facts = replace(CLAUDE, id=model, base_url=base, compat=compat)
    assert region_of(facts) == region
    assert url_of(facts, region=region or "us-east-1") == f"{url}/converse-stream"
