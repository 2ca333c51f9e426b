"""Whatever a provider sends as a figure: tokens are whole, money is finite, and nothing raises."""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import Any

import pytest

from agent_core.kernel import json
from agent_core.messages import AssistantMessage, Cost, Usage
from agent_core.messages.codec import decode_usage, encode_usage
from agent_core.providers import Prices
from agent_core.providers.adapters.bedrock_converse.stream import ConverseReader
from agent_core.providers.adapters.ollama_chat.stream import LineReader
from agent_core.providers.http.aws_event_stream import EventStreamDecoder
from agent_core.providers.http.stream import StreamReader
from agent_core.providers.messages.builder import billed, count
from agent_core.providers.model import ModelInfo
from agent_core.providers.wire.anthropic.stream import AnthropicReader
from agent_core.providers.wire.chat.stream import ChunkReader
from agent_core.providers.wire.gemini.stream import GeminiReader
from agent_core.providers.wire.responses.stream import ResponseReader
from tests.providers.replay import LAB
from tests.support.harness.clock import FakeClock

PRICED = replace(LAB, prices=Prices(input=2.0, output=10.0, cache_read=1.0, cache_write=2.5))
MILLION = 1_000_000


def converse(facts: ModelInfo, clock: FakeClock) -> StreamReader:
    return ConverseReader(facts, clock, framing=EventStreamDecoder())


WHOLE: dict[str, tuple[Callable[[ModelInfo, FakeClock], StreamReader], str]] = {
    "chat": (
        ChunkReader,
        (
            '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":N,'
            '"completion_tokens":N,"total_tokens":N,"cost":N,"cost_in_usd_ticks":N,"is_byok":true,'
            '"cost_details":{"upstream_inference_cost":N},"prompt_tokens_details":{"cached_tokens":N,'
            '"cache_write_tokens":N},"completion_tokens_details":{"reasoning_tokens":N}}}'
        ),
    ),
    "responses": (
        ResponseReader,
        (
            '{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],'
            '"usage":{"input_tokens":N,"output_tokens":N,"cost":N,"cost_in_usd_ticks":N,'
            '"input_tokens_details":{"cached_tokens":N},"output_tokens_details":{"reasoning_tokens":N}}}'
        ),
    ),
    "anthropic": (
        AnthropicReader,
        (
            '{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{'
            '"input_tokens":N,"output_tokens":N,"cache_read_input_tokens":N,"cache_creation_input_tokens":N,'
            '"cache_creation":{"ephemeral_1h_input_tokens":N}}}'
        ),
    ),
    "gemini": (
        GeminiReader,
        (
            '{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{'
            '"promptTokenCount":N,"candidatesTokenCount":N,"thoughtsTokenCount":N,"totalTokenCount":N,'
            '"cachedContentTokenCount":N}}'
        ),
    ),
    "bedrock": (
        converse,
        (
            '{"output":{"message":{"content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":N,'
            '"outputTokens":N,"cacheReadInputTokens":N,"cacheWriteInputTokens":N}}'
        ),
    ),
    "ollama": (
        LineReader,
        '{"message":{"content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":N,"eval_count":N}',
    ),
}
ODD = {
    "beyond floats": "1e999",
    "below floats": "-1e999",
    "beyond sense": f"1{'0' * 400}",
    "below zero": "-5",
    "a truth": "true",
    "a text": '"7"',
    "nothing": "null",
    "a list": "[1]",
}


def read(dialect: str, body: str, facts: ModelInfo = PRICED) -> AssistantMessage:
    make, _ = WHOLE[dialect]
    reader = make(facts, FakeClock())
    reader.read_whole(json.as_object(json.decode(body)))
    assert reader.has_end
    return reader.answer().message


@pytest.mark.parametrize("number", ODD.values(), ids=ODD)
@pytest.mark.parametrize("dialect", WHOLE)
def test_a_figure_that_cannot_be_true_counts_as_none(dialect: str, number: str) -> None:
    message = read(dialect, WHOLE[dialect][1].replace(":N", f":{number}"))
    assert message.usage == Usage(cost=Cost())
    assert decode_usage(encode_usage(message.usage)) == (message.usage, True)


@pytest.mark.parametrize("dialect", WHOLE)
def test_a_fraction_of_a_token_is_cut_off(dialect: str) -> None:
    usage = read(dialect, WHOLE[dialect][1].replace(":N", ":7.9")).usage
    assert usage.output in {7, 14}
    assert all(isinstance(each, int) for each in (usage.input, usage.output, usage.cache_read))
    assert usage.cost is not None
    assert isfinite(usage.cost.total)


@pytest.mark.parametrize("dialect", ["chat", "responses"])
@pytest.mark.parametrize(
    ("told", "dollars"),
    [
        ({"cost": 0.6}, 0.6),
        ({"cost": 0, "is_byok": False}, 0.0),
        (
            {"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}},
            0.6,
        ),
        (
            {"cost": 0.6, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}},
            0.6,
        ),
        ({"cost": {"total_cost": 0.6, "request_cost": 0.5}}, 0.6),
        ({"cost_in_usd_ticks": 6_000_000_000}, 0.6),
        ({"cost_in_usd_ticks": 0}, 12.0),
        ({"cost": "0.6"}, 12.0),
        ({"cost": -1}, 12.0),
        ({}, 12.0),
    ],
    ids=[
        "billed",
        "free",
        "own key",
        "no own key",
        "in parts",
        "ticks",
        "no ticks",
        "a text",
        "below zero",
        "list",
    ],
)
def test_what_was_billed_is_the_cost(dialect: str, told: dict[str, Any], dollars: float) -> None:
    names = {
        "chat": ("prompt_tokens", "completion_tokens"),
        "responses": ("input_tokens", "output_tokens"),
    }[dialect]
    body = json.as_object(json.decode(WHOLE[dialect][1].replace(":N", ":0")))
    usage = {**dict.fromkeys(names, MILLION), **told}
    message = read(dialect, json.encode({**body, "usage": usage}).decode())
    assert message.usage.cost is not None
    assert message.usage.cost.total == pytest.approx(dollars)
    again, whole = decode_usage(encode_usage(message.usage))
    assert whole
    assert again.cost == message.usage.cost


def test_a_bill_without_a_list_is_a_cost_too() -> None:
    body = '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"cost":0.5}}'
    assert read("chat", body, LAB).usage.cost == Cost(output=0.5)


@pytest.mark.parametrize(
    ("used", "ticks"),
    [
        # (fresh, cached, output) and what was billed, as xAI has sent it, with its prices per million tokens.
        ((278 * 0.20, 192 * 0.02, 253 * 1.50), 4_389_400),
        ((278 * 1.25, 192 * 0.20, 81 * 2.50), 5_884_000),
    ],
    ids=["grok-code-fast-1", "grok-4.3"],
)
def test_a_tick_is_a_ten_billionth_of_a_dollar(used: tuple[float, ...], ticks: int) -> None:
    assert billed({"cost_in_usd_ticks": ticks}) == pytest.approx(sum(used) / MILLION)


LONG = {
    "input_tokens": MILLION,
    "output_tokens": 1,
    "cache_creation_input_tokens": MILLION,
    "cache_creation": {"ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000},
}


def streamed(*usages: dict[str, Any] | None) -> Usage:
    start, end = usages
    reader = AnthropicReader(PRICED, FakeClock())
    reader.read({"type": "message_start", "message": {"id": "m", "usage": start}}, name=b"")
    delta = {"stop_reason": "end_turn"}
    reader.read({"type": "message_delta", "delta": delta, "usage": end}, name=b"")
    reader.read({"type": "message_stop"}, name=b"")
    return reader.answer().message.usage


@pytest.mark.parametrize(
    "usages",
    [(LONG, {"output_tokens": 1}), ({"input_tokens": 1}, LONG), (LONG, LONG)],
    ids=["at the start", "at the end", "twice"],
)
def test_what_is_cached_for_an_hour_costs_the_price_of_the_hour(
    usages: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    usage = streamed(*usages)
    assert (usage.input, usage.cache_write) == (MILLION, MILLION)
    assert usage.cost is not None
    # Five minutes at 2.5; an hour at twice the input's 2.0.
    assert usage.cost.cache_write == pytest.approx(0.4 * 2.5 + 0.6 * 4.0)


def test_without_ages_every_write_is_a_short_one() -> None:
    told = {key: value for key, value in LONG.items() if key != "cache_creation"}
    usage = streamed(told, None)
    assert usage.cost is not None
    assert usage.cost.cache_write == pytest.approx(2.5)


def test_a_count_is_whole() -> None:
    assert [count(each) for each in (3, 3.9, 0, 10**12, 10**12 + 1)] == [3, 3, 0, 10**12, 0]
