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
    Usage,
    UserMessage,
)
from agent_core.providers import ModelFacts, ModelRequest, ToolDeclaration
from agent_core.providers.adapters.openai_completions.request import request_body
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, Outcome, ask, model_at

READ = ToolDeclaration(
    name="read", description="Reads.", parameters={"type": "object", "properties": {}}
)
READ_SENT = {
    "name": "read",
    "description": "Reads.",
    "parameters": {"type": "object", "properties": {}},
}
API = "openai-completions"


def said(*content: Any, facts: ModelFacts = LAB) -> AssistantMessage:
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


def test_deepseek_gets_a_reasoning_field_with_every_answer():
    facts = replace(LAB, base_url="https://api.deepseek.com")
    body = request_body(replace(HELLO, messages=(user("a"), said(Text(text="b")))), facts)
    assert body["messages"][-1] == {"role": "assistant", "content": "b", "reasoning_content": ""}  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType] - JSON


async def heard(pools: Pools, *events: Any) -> Outcome:
    async with loopback(Reply(sse(*events))) as server:
        return await ask(model_at(server.url, API, pools()))


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def calls(*deltas: dict[str, Any]) -> dict[str, Any]:
    return chunk(tool_calls=list(deltas))


END = [chunk("tool_calls"), "[DONE]"]


def called(outcome: Outcome) -> list[tuple[str, str, Any]]:
    assert outcome.error is None
    assert outcome.message is not None
    return [(call.id, call.name, call.arguments) for call in outcome.message.tool_calls]


async def test_calls_with_one_index_and_two_ids_are_two(pools: Pools):
    outcome = await heard(
        pools,
        calls({"index": 0, "id": "a", "function": {"name": "x"}}),
        calls({"index": 0, "function": {"arguments": '{"n":1}'}}),
        calls({"index": 0, "id": "b", "function": {"name": "y", "arguments": "{}"}}),
        *END,
    )
    assert called(outcome) == [("a", "x", {"n": 1}), ("b", "y", {})]


async def test_a_repeated_id_and_name_is_more_of_the_same_call(pools: Pools):
    outcome = await heard(
        pools,
        calls({"index": 0, "id": "a", "function": {"name": "x", "arguments": '{"n":'}}),
        calls({"index": 0, "id": "a", "function": {"name": "x", "arguments": "1}"}}),
        *END,
    )
    assert called(outcome) == [("a", "x", {"n": 1})]


async def test_calls_without_any_index_or_id_are_told_apart_and_get_ids(pools: Pools):
    outcome = await heard(
        pools,
        calls(
            {"id": "", "function": {"name": "x", "arguments": "{}"}},
            {"id": "", "function": {"name": "x", "arguments": '{"n":2}'}},
        ),
        *END,
    )
    (first, *_), (second, *_) = made = called(outcome)
    assert [each[1:] for each in made] == [("x", {}), ("x", {"n": 2})]
    assert first
    assert second
    assert first != second


async def test_a_name_that_comes_late_and_empty_names_behind_it_do_no_harm(pools: Pools):
    outcome = await heard(
        pools,
        calls({"index": 0, "id": "a", "function": {"arguments": '{"n"'}}),
        calls({"index": 0, "function": {"name": "x", "arguments": ":1}"}}),
        calls({"index": 0, "function": {"name": "", "arguments": None}}),
        *END,
    )
    assert called(outcome) == [("a", "x", {"n": 1})]
    kinds = [type(part).__name__ for part in outcome.parts]
    assert kinds[0] == "ToolCallStart"


async def test_a_call_without_a_name_is_no_answer(pools: Pools):
    outcome = await heard(pools, calls({"index": 0, "id": "a", "function": {}}), *END)
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


async def test_arguments_that_break_off_are_told_and_never_guessed(pools: Pools):
    outcome = await heard(
        pools,
        calls({"index": 0, "id": "a", "function": {"name": "x", "arguments": '{"path": "a'}}),
        chunk("length"),
        "[DONE]",
    )
    assert outcome.message is not None
    (call,) = outcome.message.tool_calls
    assert (call.arguments, outcome.message.stop_reason) == ({}, "length")
    assert call.arguments_error is not None
    assert '{"path": "a' in call.arguments_error


async def test_calls_behind_a_plain_stop_are_calls_all_the_same(pools: Pools):
    outcome = await heard(
        pools,
        calls({"index": 0, "id": "a", "function": {"name": "x", "arguments": {"n": 1}}}),
        chunk("stop"),
        "[DONE]",
    )
    assert called(outcome) == [("a", "x", {"n": 1})]
    assert outcome.message is not None
    assert (outcome.message.stop_reason, outcome.message.raw_stop_reason) == ("tool_use", "stop")


async def test_reasoning_details_come_back_as_they_were(pools: Pools):
    details = [
        {"type": "reasoning.text", "index": 0, "text": "h"},
        {"type": "reasoning.text", "index": 0, "text": "m", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz", "id": "r1"},
    ]
    outcome = await heard(
        pools,
        chunk(reasoning="h", reasoning_details=details[:1]),
        chunk(reasoning="m", reasoning_details=details[1:2]),
        chunk(content="ok", reasoning_details=details[2:]),
        chunk("stop"),
        "[DONE]",
    )
    assert outcome.message is not None
    again = request_body(
        replace(HELLO, messages=(outcome.message,)), replace(LAB, base_url="http://x")
    )
    assert again["messages"][-1] == {  # pyright: ignore[reportIndexIssue, reportOptionalSubscript, reportArgumentType] - JSON
        "role": "assistant",
        "content": "ok",
        "reasoning": "hm",
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "xyz", "id": "r1"},
        ],
    }


async def test_a_usage_of_zeros_does_not_hide_the_true_one(pools: Pools):
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    true = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    outcome = await heard(
        pools,
        chunk(content="a") | {"usage": zero},
        chunk("stop") | {"usage": true},
        {"choices": [], "usage": zero},
        "[DONE]",
    )
    assert outcome.message is not None
    assert outcome.message.usage == Usage(input=9, output=1)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("content_filter", "refused"),
        ("network_error", "server"),
        ("model_context_window_exceeded", "context_overflow"),
    ],
)
async def test_an_end_that_is_no_answer_is_an_error(finish: str, reason: str, pools: Pools):
    outcome = await heard(pools, chunk(finish), "[DONE]")
    assert outcome.error is not None
    assert outcome.error.reason == reason


async def test_an_error_beside_a_choice_ends_the_answer(pools: Pools):
    outcome = await heard(
        pools,
        chunk(content="a"),
        chunk(content="b") | {"error": {"code": 502, "message": "upstream"}},
        "[DONE]",
    )
    assert outcome.text == "a"
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.status) == ("server", 502)
    assert not outcome.error.before_first_byte


async def test_deltas_of_no_use_are_passed_over(pools: Pools):
    outcome = await heard(
        pools,
        {"choices": []},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [None, 3]},
        [1],
        None,
        {"choices": [{"index": 1, "delta": {"content": "no"}}]},
        chunk(content=None, role="assistant", tool_calls=None),
        chunk(content="yes"),
        chunk("stop"),
        "[DONE]",
    )
    assert (outcome.text, outcome.error) == ("yes", None)
