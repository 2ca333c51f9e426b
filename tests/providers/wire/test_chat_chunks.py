"""Chat Completions: what is read, and the quirks of those who speak it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import Text, Thinking, ToolCall, Usage
from agent_core.providers.adapters.openai_completions.request import request_body
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, Outcome, ask, model_at

API = "openai-completions"


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


async def test_a_name_that_is_repeated_with_every_piece_is_one_call(pools: Pools):
    pieces = ['{"a":', "{}", ',"b":"', "}{", '"}']
    deltas = [calls({"function": {"name": "x", "arguments": piece}}) for piece in pieces]
    outcome = await heard(pools, *deltas, *END)
    assert [each[1:] for each in called(outcome)] == [("x", {"a": {}, "b": "}{"})]


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


async def test_what_stands_for_a_hidden_thought_goes_back(pools: Pools):
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}
    outcome = await heard(
        pools,
        chunk(content=None, tool_calls=[call], reasoning_opaque="sealed"),
        chunk("tool_calls"),
        "[DONE]",
    )
    assert outcome.message is not None
    facts = replace(LAB, base_url="http://x")
    again: Any = request_body(replace(HELLO, messages=(outcome.message,)), facts)
    assert again["messages"][1]["reasoning_opaque"] == "sealed"
    elsewhere: Any = request_body(
        replace(HELLO, messages=(outcome.message,)), replace(facts, id="other")
    )
    assert "reasoning_opaque" not in elsewhere["messages"][1]


async def test_the_signature_of_a_call_goes_back_with_it(pools: Pools):
    signed = {"google": {"thought_signature": "sig"}}
    call = {"index": 0, "id": "c1", "function": {"name": "read"}, "extra_content": signed}
    outcome = await heard(pools, calls(call), *END)
    assert outcome.message is not None
    again: Any = request_body(
        replace(HELLO, messages=(outcome.message,)), replace(LAB, base_url="http://x")
    )
    assert again["messages"][1]["tool_calls"][0]["extra_content"] == signed


async def whole(pools: Pools, body: dict[str, Any]) -> Outcome:
    reply = Reply([json.dumps(body).encode()], headers={"content-type": "application/json"})
    async with loopback(reply) as server:
        return await ask(model_at(server.url, API, pools()))


async def test_an_answer_in_one_piece_is_read_as_one_that_was_streamed(pools: Pools):
    """Copilot puts Claude's words into the first choice and its calls into later ones."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n":1}'}}
    outcome = await whole(
        pools,
        {
            "id": "r1",
            "choices": [
                {
                    "message": {"content": "Hello", "reasoning_content": "hm"},
                    "finish_reason": "tool_calls",
                },
                {"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"},
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        },
    )
    assert outcome.message is not None
    assert outcome.message.content == (
        Thinking(text="hm", signature="reasoning_content"),
        Text(text="Hello"),
        ToolCall(id=ToolCallId("c1"), name="read", arguments={"n": 1}),
    )
    assert (outcome.text, outcome.thinking) == ("Hello", "hm")
    message = outcome.message
    assert (message.stop_reason, message.response_id) == ("tool_use", "r1")
    assert message.usage == Usage(input=10, output=5)


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


@pytest.mark.parametrize(
    "told",
    [
        {
            "object": "error",
            "message": "prompt is too long",
            "type": "BadRequestError",
            "code": 400,
        },
        {
            "choices": [
                {
                    "delta": {"content": ""},
                    "finish_reason": "error",
                    "error": {"code": 400, "message": "prompt is too long"},
                }
            ]
        },
        "event: error\ndata: prompt is too long",
    ],
    ids=["bare", "in-a-choice", "words"],
)
async def test_an_error_is_found_wherever_it_stands(told: Any, pools: Pools):
    steps = [f"{told}\n\n".encode()] if isinstance(told, str) else sse(told)
    async with loopback(Reply(steps)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("context_overflow", True)


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


LIMIT = {"error": {"code": 400, "message": "Token limit reached"}}


async def test_an_error_that_repeats_the_output_limit_leaves_the_answer_whole(pools: Pools):
    outcome = await heard(pools, chunk(content="half"), chunk("length"), LIMIT)
    assert outcome.error is None
    assert outcome.message is not None
    assert (outcome.message.text, outcome.message.stop_reason) == ("half", "length")


async def test_an_output_limit_without_a_word_is_an_error_that_compaction_does_not_answer(
    pools: Pools,
):
    outcome = await heard(pools, chunk("length"), LIMIT)
    assert outcome.error is not None
    assert outcome.error.reason == "invalid_request"


async def test_another_error_behind_the_output_limit_is_one(pools: Pools):
    slow = {"error": {"code": 429, "message": "slow down"}}
    outcome = await heard(pools, chunk(content="half"), chunk("length"), slow)
    assert outcome.error is not None
    assert outcome.error.reason == "rate_limit"
