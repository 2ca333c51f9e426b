"""Arguments can be shown while they stream, at a cost that is linear in their length."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import JsonObject
from agent_core.providers.messages.partial_json import GrowingArguments


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
    arguments = GrowingArguments()
    arguments.grow(text)
    assert arguments.value == value


def test_the_value_grows_with_the_pieces():
    arguments = GrowingArguments()
    seen = []
    for piece in ('{"file": "/sr', 'c/main.ts", "li', 'nes": 3}'):
        assert arguments.grow(piece)
        seen.append(arguments.value)
    assert seen == [
        {"file": "/sr"},
        {"file": "/src/main.ts"},
        {"file": "/src/main.ts", "lines": 3},
    ]


def test_what_goes_wrong_late_leaves_what_was_read():
    arguments = GrowingArguments()
    arguments.grow('{"path": "a", ')
    assert not arguments.grow("oops oops oops")
    assert arguments.finish() == {"path": "a"}


def test_a_long_text_is_read_a_few_times_only_and_in_the_end_wholly():
    value = {"path": "a", "content": 'if (x) { y["é"]() }\n' * 20_000}
    text = json.dumps(value)
    arguments = GrowingArguments()
    characters = 0
    for end in range(7, len(text) + 7, 7):
        if arguments.grow(text[end - 7 : end]):
            characters += end
    assert arguments.finish() == value
    # A geometric row: 1 / (1 - 1 / 1.05) times the length.
    assert characters < 22 * len(text)


@given(
    value=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=5),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
def test_however_it_is_cut_the_end_is_the_whole(value: dict[str, Any], cuts: list[int]):
    text = json.dumps(value)
    arguments = GrowingArguments()
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in pairwise(edges):
        arguments.grow(text[start:end])
    assert arguments.finish() == value
