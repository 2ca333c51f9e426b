"""Arguments can be shown while they stream, at a cost that is linear in their length."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import JsonObject
from agent_core.providers.messages.partial_json import SHORT_CHARS, GrowingArguments
from tests.support.harness.clock import FakeClock


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ('{"a":1}', {"a": 1}),
        ('{"file":"/src/ma', {"file": "/src/ma"}),
        ('{"a":1,"b":2', {"a": 1, "b": 2}),
        ('{"a":{"b":1', {"a": {"b": 1}}),
        ('{"items":[1,2,3', {"items": [1, 2, 3]}),
        ('{"a":1,', {"a": 1}),
        ('{"a":1,"b', {"a": 1}),
        ('{"a":1,"b":tr', {"a": 1}),
        ('{"a":"x\\', {"a": "x"}),
        ("[1, 2", {}),
        ("null", {}),
        ("no json", {}),
    ],
    ids=[
        "nothing",
        "whole",
        "open-string",
        "open-object",
        "nested",
        "array",
        "trailing-comma",
        "cut-key",
        "cut-word",
        "cut-escape",
        "list",
        "null",
        "no-json",
    ],
)
def test_a_beginning_is_read_as_far_as_it_goes(text: str, value: JsonObject):
    arguments = GrowingArguments(FakeClock())
    arguments.add(text)
    assert arguments.parse() == value


def test_the_value_grows_with_the_pieces():
    arguments = GrowingArguments(FakeClock())
    seen = []
    for piece in ('{"file": "/sr', 'c/main.ts", "li', 'nes": 3}'):
        arguments.add(piece)
        assert arguments.is_due
        seen.append((arguments.parse(), arguments.is_whole))
        assert not arguments.has_more
    assert seen == [
        ({"file": "/sr"}, False),
        ({"file": "/src/main.ts"}, False),
        ({"file": "/src/main.ts", "lines": 3}, True),
    ]


def test_what_goes_wrong_late_leaves_what_was_read():
    arguments = GrowingArguments(FakeClock())
    arguments.add('{"path": "a", ')
    assert arguments.parse() == {"path": "a"}
    arguments.add("oops oops oops")
    assert (arguments.parse(), arguments.read_chars) == ({"path": "a"}, len('{"path": "a", '))


def test_short_texts_are_read_when_they_grew_by_a_quarter_and_long_ones_when_time_has_passed():
    clock = FakeClock()
    arguments = GrowingArguments(clock)
    parsed_at = []
    for chars in range(1, SHORT_CHARS + 1):
        arguments.add("x")
        if arguments.is_due:
            arguments.parse()
            parsed_at.append(chars)
    assert parsed_at[:7] == [1, 2, 3, 4, 5, 7, 9]
    assert len(parsed_at) < 30
    arguments.add("x" * 99_999)
    assert not arguments.is_due
    clock.advance(0.11)
    assert arguments.is_due
    arguments.parse()
    assert not arguments.is_due
    arguments.add("x")
    clock.advance(1.0)
    assert not arguments.is_due, "a long text is read less often"
    clock.advance(0.11)
    assert arguments.is_due


def test_a_long_text_is_read_a_few_times_only_and_in_the_end_wholly():
    value = {"path": "a", "content": 'if (x) { y["é"]() }\n' * 20_000}
    text = json.dumps(value)
    clock = FakeClock()
    arguments = GrowingArguments(clock)
    characters = 0
    for end in range(7, len(text) + 7, 7):
        clock.advance(0.001)  # a fast model: 7,000 characters a second
        arguments.add(text[end - 7 : end])
        if arguments.is_due:
            arguments.parse()
            characters += end
    assert arguments.parse() == value
    assert characters < 40 * len(text)


@given(
    value=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=5),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
def test_however_it_is_cut_the_end_is_the_whole(value: dict[str, Any], cuts: list[int]):
    text = json.dumps(value)
    arguments = GrowingArguments(FakeClock())
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in pairwise(edges):
        arguments.add(text[start:end])
        if arguments.is_due:
            arguments.parse()
    assert arguments.parse() == value
