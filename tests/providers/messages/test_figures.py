"""Tokens, money and thinking levels: the arithmetic, on values."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.events import ThinkingLevel
from agent_core.messages import Cost, Text, Usage, UserMessage
from agent_core.providers import ModelRequest, Prices
from agent_core.providers.messages.builder import priced, read_arguments
from agent_core.providers.messages.request_options import (
    budget,
    clamp,
    clamp_output,
    effort,
    measured,
    output_limit,
    supported,
)
from agent_core.providers.model import PriceTier
from agent_core.providers.wire.chat.stream import read_usage
from tests.providers.replay import LAB


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({}, None),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            Usage(input=10, output=5),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=5, output=5, cache_read=4, cache_write=1, reasoning=3),
        ),
        # xAI: beside the completion.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=10, output=8, reasoning=3),
        ),
        # Gemini behind a gateway: in no sum at all.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 18,
                "total_tokens": 28,
                "completion_tokens_details": {"reasoning_tokens": 137},
            },
            Usage(input=10, output=155, reasoning=137),
        ),
        # Azure: more cached than asked.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 161},
            },
            Usage(input=0, output=1, cache_read=10),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 6},
            Usage(input=4, output=1, cache_read=6),
        ),
        (
            {"prompt_tokens": -3, "completion_tokens": None, "prompt_tokens_details": None},
            Usage(),
        ),
    ],
)
def test_counts_are_read_as_each_provider_means_them(told: dict[str, Any], meant: Usage | None):
    counted = read_usage(told)
    assert (counted and counted.usage) == meant


def test_an_unknown_price_is_not_a_free_answer():
    used = Usage(input=1_000_000, output=500_000, cache_read=1_000_000)
    assert priced(used, None).cost is None
    prices = Prices(input=3, output=15, cache_read=0.3)
    assert priced(used, prices).cost == Cost(input=3, output=7.5, cache_read=0.3)


def test_the_price_of_a_long_input_counts_for_all_of_it():
    dear = PriceTier(input_above=1000, prices=Prices(input=4, output=8))
    prices = Prices(input=2, output=4, tiers=(dear,))
    assert priced(Usage(input=1000, output=1), prices).cost == Cost(input=0.002, output=4e-6)
    over = priced(Usage(input=900, cache_read=101, output=1), prices).cost
    assert over == Cost(input=0.0036, output=8e-6)


@pytest.mark.parametrize(
    ("wanted", "window", "tokens", "limit"),
    [
        (8_192, 200_000, 10_000, 8_192),
        (64_000, 200_000, 100_000, 64_000),
        (64_000, 200_000, 150_000, 32_768),
        (64_000, 200_000, 190_000, 5_904),
        (64_000, 200_000, 199_999, 1),
        (4_096, 4_000, 1_000, 2_000),
        (4_096, 4_000, 5_000, 1),
    ],
)
def test_the_output_fits_what_the_input_leaves(wanted: int, window: int, tokens: int, limit: int):
    assert clamp_output(wanted, context_window=window, input_tokens=tokens) == limit


def test_a_request_may_ask_for_less_than_the_model_gives_and_not_for_more():
    words = UserMessage(content=(Text(text="x" * 350),), at_ms=0)
    asked = ModelRequest(system="", messages=(words,), max_tokens=100)
    size = measured((words,))
    assert output_limit(asked, size, LAB) == 100
    assert output_limit(replace(asked, max_tokens=10**9), size, LAB) == LAB.max_tokens
    assert (
        output_limit(replace(asked, max_tokens=None), size, replace(LAB, context_window=0))
        == LAB.max_tokens
    )


THINKER = replace(LAB, reasoning=True)
MAPPED = replace(
    THINKER,
    compat={"thinkingLevelMap": {"off": None, "minimal": None, "xhigh": "extreme", "high": None}},
)


def test_levels_are_those_the_model_has():
    assert supported(LAB) == ("off",)
    assert supported(THINKER) == ("off", "minimal", "low", "medium", "high")
    assert supported(MAPPED) == ("low", "medium", "xhigh")


@pytest.mark.parametrize(
    ("level", "own", "mapped"),
    [
        ("off", "off", "low"),
        ("minimal", "minimal", "low"),
        ("high", "high", "xhigh"),
        ("xhigh", "high", "xhigh"),
        ("max", "high", "xhigh"),
    ],
)
def test_a_level_that_is_missing_becomes_the_next_one_up_else_down(
    level: ThinkingLevel, own: str, mapped: str
):
    assert clamp(level, LAB) == "off"
    assert (clamp(level, THINKER), clamp(level, MAPPED)) == (own, mapped)


def test_a_level_is_told_in_the_models_own_word():
    assert (effort("xhigh", MAPPED), effort("low", MAPPED)) == ("extreme", "low")


def test_thinking_leaves_room_for_the_answer():
    assert budget("high", max_tokens=32_000) == 16_384
    assert budget("high", max_tokens=4_096) == 3_072
    assert budget("low", max_tokens=2_000) == 0
    assert budget("off", max_tokens=32_000) == 0


@pytest.mark.parametrize("text", ["", "  ", "null", "{}"])
def test_no_arguments_may_be_written_in_many_ways(text: str):
    assert read_arguments(text) == ({}, None)


@pytest.mark.parametrize("text", ['{"a": 1', "[1]", '"x"', "{'a': 1}", '{"a": NaN}', "[" * 100_000])
def test_what_is_no_object_is_never_guessed_at(text: str):
    arguments, error = read_arguments(text)
    assert arguments == {}
    assert error is not None
    assert text[:4000] in error
    assert len(error) < 4500


@pytest.mark.parametrize("text", ['{"a": "\\ud800/x"}', '{"\\udc00": 1}', '{"a": ["\ud800"]}'])
def test_half_a_character_is_refused_and_never_another_one(text: str):
    arguments, error = read_arguments(text)
    assert arguments == {}
    assert error is not None
    assert "half of a character" in error
    assert "\\ud800" in error or "\\udc00" in error


def test_a_character_that_is_written_as_two_halves_is_read():
    assert read_arguments('{"a": "\\ud83d\\ude00 \ufffd"}') == ({"a": "😀 \ufffd"}, None)
