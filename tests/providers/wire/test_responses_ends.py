"""The Responses API: how an answer ends, well or badly."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import Cost, Text, Thinking, ToolCall, Usage
from agent_core.providers import Prices, StreamEvent, TextDelta
from agent_core.providers.wire.responses.stream import ENDS, ResponseReader
from tests.providers.wire.responses_events import (
    FACTS,
    USAGE,
    arguments,
    ended,
    failed,
    failure,
    item,
    read,
    said,
    words,
)
from tests.support.harness.clock import FakeClock
from tests.support.harness.sizes import at_size


@pytest.mark.parametrize(
    ("last", "stop", "raw"),
    [
        (ended(), "stop", "completed"),
        ({**ended(), "type": "response.done"}, "stop", "completed"),
        (
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
            "max_output_tokens",
        ),
    ],
    ids=["completed", "done", "out of tokens"],
)
def test_an_answer_ends_as_its_response_says(last: dict[str, Any], stop: str, raw: str):
    message, _ = read(words("ok"), last)
    assert (message.stop_reason, message.raw_stop_reason) == (stop, raw)


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (USAGE, Usage(input=5, output=5, cache_read=4, cache_write=1, reasoning=3)),
        (
            {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 161},
                "output_tokens": 1,
            },
            Usage(cache_read=10, output=1),
        ),
        ({"input_tokens": float("inf"), "output_tokens": -3}, Usage()),
        (
            {"input_tokens": "many", "input_tokens_details": None, "output_tokens": 2.0},
            Usage(output=2),
        ),
        (None, Usage()),
    ],
    ids=["openai's", "more cached than asked", "no numbers", "odd", "none"],
)
def test_counts_are_read_as_they_are_meant(told: Any, meant: Usage):
    message, _ = read(words("ok"), ended(usage=told))
    assert message.usage == meant


LISTED = Prices(input=2.0, output=10.0, cache_read=1.0)
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "told", "cost"),
    [
        ("gpt-5", {}, Cost(input=2.0, output=10.0)),
        ("gpt-5", {"service_tier": "default"}, Cost(input=2.0, output=10.0)),
        ("gpt-5", {"service_tier": "flex"}, Cost(input=1.0, output=5.0)),
        ("gpt-5", {"service_tier": "priority"}, Cost(input=4.0, output=20.0)),
        ("gpt-5.5", {"service_tier": "priority"}, Cost(input=5.0, output=25.0)),
        ("gpt-5", {"service_tier": "flex", "usage": {"cost": 6.0}}, Cost(input=1.0, output=5.0)),
        (
            "gpt-5",
            {
                "usage": {
                    "cost": 1.0,
                    "is_byok": True,
                    "cost_details": {"upstream_inference_cost": 5.0},
                }
            },
            Cost(input=1.0, output=5.0),
        ),
        ("gpt-5", {"usage": {"cost": "6"}}, Cost(input=2.0, output=10.0)),
    ],
    ids=["list", "usual", "flex", "priority", "dearer", "billed", "own key", "no number"],
)
def test_an_answer_costs_what_was_billed_or_what_its_tier_costs(
    model: str, told: dict[str, Any], cost: Cost
):
    usage = {"input_tokens": MILLION, "output_tokens": MILLION, **told.get("usage", {})}
    facts = replace(FACTS, id=model, prices=LISTED)
    reader = ResponseReader(facts, FakeClock())
    more: dict[str, Any] = {key: value for key, value in told.items() if key != "usage"}
    reader.read(ended(usage=usage, **more), name=b"")
    assert reader.answer().message.usage.cost == cost


def test_a_call_that_was_cut_short_for_length_is_no_reason_to_fail():
    message, _ = read(
        item("function_call", id="fc_1", call_id="c1", name="ls", arguments=""),
        arguments('{"a', 0),
        ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert message.stop_reason == "length"
    assert [call.arguments for call in message.tool_calls] == [{}]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (failed(code="insufficient_quota", message="You exceeded your quota"), "quota"),
        (failed(code="rate_limit_exceeded", message="Slow down"), "rate_limit"),
        (failed(code="server_error", message="Sorry"), "server"),
        (failed(code="context_length_exceeded", message="Too much"), "context_overflow"),
        (failed(code="invalid_prompt", message="Flagged"), "invalid_request"),
        (failed(code="image_too_large", message="Too large"), "invalid_request"),
        (failed(code="content_filter", message="Filtered"), "refused"),
        (ended("failed", error=None), "server"),
        (ended("cancelled"), "server"),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), "refused"),
        (ended("incomplete", incomplete_details={"reason": "moonlight"}), "server"),
        ({"type": "error", "code": "insufficient_quota", "message": "No money"}, "quota"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"}, "rate_limit"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "No"}},
            "invalid_request",
        ),
        ({"error": {"code": 429, "message": "Provider returned error"}}, "rate_limit"),
    ],
    ids=[
        "failed: quota",
        "failed: rate",
        "failed: server",
        "failed: window",
        "failed: prompt",
        "failed: picture",
        "failed: filtered",
        "failed: no reason",
        "cancelled",
        "filtered",
        "unknown",
        "event: quota",
        "event: rate",
        "event: an object",
        "event: a gateway's",
    ],
)
def test_a_failure_is_told_by_its_kind(last: dict[str, Any], reason: str):
    error = failure(words("Hel"), last)
    assert (error.reason, error.before_first_byte) == (reason, False)


def test_a_failure_before_any_part_says_so_and_how_long_to_wait():
    error = failure(failed(code="rate_limit_exceeded", message="Please try again in 1.5s."))
    assert (error.before_first_byte, error.retry_after_s) == (True, 1.5)


def test_a_failed_response_that_does_not_say_why_is_not_shown_whole():
    assert str(failure(ended("failed", error=None))) == "lab broke off: the response is failed"


def test_an_answer_that_ends_in_the_middle_of_a_call_is_an_error():
    error = failure(
        item("function_call", id="fc_1", call_id="c1", name="ls", arguments=""),
        arguments('{"a":1}', 0),
        ended(),
    )
    assert error.reason == "protocol"


WHOLE = {
    "object": "response",
    "id": "resp_1",
    "status": "completed",
    "error": None,
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "content": said("Hello")},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "ls",
            "arguments": "{}",
        },
    ],
    "usage": USAGE,
}


def test_an_answer_that_was_not_streamed_is_read():
    reader = ResponseReader(FACTS, FakeClock())
    reader.read_whole(WHOLE)
    assert reader.has_end
    message = reader.answer().message
    assert message.stop_reason == "tool_use"
    assert message.content == (
        Thinking(text="hm"),
        Text(text="Hello", signature='{"v":1,"id":"msg_1"}'),
        ToolCall(id=ToolCallId("c1"), name="ls", arguments={}, signature="fc_1"),
    )
    assert message.usage.total == 15


def test_what_is_no_answer_at_all_is_not_taken_for_one():
    reader = ResponseReader(FACTS, FakeClock())
    reader.read_whole({"hello": "world"})
    assert not reader.has_end


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"error": {"code": "server_error", "message": "Sorry"}}, "server"),
        ({"status": "in_progress"}, "server"),
    ],
    ids=["error", "not done"],
)
def test_a_whole_answer_that_failed_is_an_error(more: dict[str, Any], reason: str):
    reader = ResponseReader(FACTS, FakeClock())
    with pytest.raises(ProviderError) as caught:
        reader.read_whole({**WHOLE, **more})
    assert caught.value.reason == reason


NAMES = (
    *ENDS,
    "error",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
)
KINDS = ("message", "reasoning", "function_call", "custom_tool_call", "x")
KEYS = (
    *("type", "id", "call_id", "name", "arguments", "input", "content", "summary", "phase"),
    *("item_id", "output_index", "summary_index", "delta", "output", "usage", "error"),
    *("incomplete_details", "input_tokens", "output_tokens", "input_tokens_details"),
)
PLAIN: tuple[Any, ...] = (None, True, -1, 0, 1.5, float("inf"), float("nan"), "", "a", "{")


def odd_events(seed: int) -> list[Any]:
    """Make events up whose names are right and whose contents may be anything."""
    random = Random(seed)  # noqa: S311 - it must be the same each time

    def value(depth: int) -> Any:
        match random.randrange(8) if depth else 0:
            case 5:
                return [value(depth - 1) for _ in range(random.randrange(3))]
            case 6 | 7:
                return table(depth - 1)
            case _:
                return random.choice((*PLAIN, *KINDS, "completed", "max_output_tokens"))

    def table(depth: int) -> dict[str, Any]:
        keys = random.sample((*KEYS, "text", "status", "code", "reason"), 8)
        return {"type": random.choice(KINDS), **{key: value(depth) for key in keys}}

    def event() -> dict[str, Any]:
        known = {"type": random.choice(NAMES), "item": table(1), "response": table(2)}
        return {**table(1), **known, "delta": random.choice(("a", value(1)))}

    return [event() for _ in range(random.randint(1, 8))]


@pytest.mark.timeout(60)
def test_whatever_comes_is_read_or_is_an_error_of_the_provider():
    answers = 0
    for seed in range(at_size(ci=200, campaign=10_000)):
        reader = ResponseReader(FACTS, FakeClock())
        parts: list[StreamEvent] = []
        try:
            for event in odd_events(seed):
                reader.read(event, name=b"")
                parts += reader.take()
            message = reader.answer().message
        except ProviderError:
            continue
        answers += reader.has_end
        told = "".join(part.text for part in parts if isinstance(part, TextDelta))
        assert sorted(message.text) == sorted(told)
    assert answers > 0
