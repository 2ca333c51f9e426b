"""JSON in and out: whatever we write anybody can read, whatever others write is read or refused, never crashed on."""

import json as stdlib
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import JsonValue
from agent_core.kernel.json import (
    LoneSurrogate,
    as_object,
    decode,
    decode_exact,
    decode_partial,
    encode,
    is_object,
    scrub,
)

LONE = "\ud800"
PAIR = "\ud83d\ude00"
NAN, INF = float("nan"), float("inf")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=20)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": [1, 2.5, True, None, "ä\n😀"]}, '{"a":[1,2.5,true,null,"ä\\n😀"]}'),
        ({"a": NAN, "b": INF, "c": -INF}, '{"a":null,"b":null,"c":null}'),
        ({"a": LONE}, '{"a":"\ufffd"}'),
        ({LONE: 1}, '{"\ufffd":1}'),
        ({"a": PAIR}, '{"a":"😀"}'),
        ({"a": LONE, "b": NAN, "c": [INF]}, '{"a":"\ufffd","b":null,"c":[null]}'),
        ((LONE, (1, NAN)), '["\ufffd",[1,null]]'),
        (MappingProxyType({"a": LONE}), '{"a":"\ufffd"}'),
        ("\0\x1f\u2028", '"\\u0000\\u001f\u2028"'),
        (10**400, "1" + "0" * 400),
    ],
    ids=[
        "plain", "not-finite", "lone", "lone-key", "pair", "lone-and-nan",
        "tuple", "mapping", "controls", "huge",
    ],
)  # fmt: skip
def test_a_value_is_written_on_one_line(value: JsonValue, written: str) -> None:
    assert encode(value).decode() == written


def test_deep_nesting_is_written_and_read() -> None:
    for depth in (150, 300):
        deep: JsonValue = "x"
        for _ in range(depth):
            deep = [deep]
        assert decode(encode(deep)) == deep


@given(value=VALUES)
def test_what_was_written_is_valid_and_reads_as_it_was(value: JsonValue) -> None:
    line = encode(value)
    assert b"\n" not in line
    assert decode(line) == stdlib.loads(line)
    assert encode(decode(line)) == line


@given(text=ANY_TEXT)
def test_any_text_can_be_written_as_value_and_key(text: str) -> None:
    assert decode(encode({text: [text]})) == {scrub(text): [scrub(text)]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        (b'"\xc3\xa4"', "ä"),
        ('"\\ud800"', "\ufffd"),
        ('{"\\udc00x":"\\ud83d\\ude00"}', {"\ufffdx": "😀"}),
        ("9" * 400, int("9" * 400)),
        ("-0.5e-3", -0.0005),
    ],
)
def test_json_is_read(text: str | bytes, value: JsonValue) -> None:
    assert decode(text) == value


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '{"a": ["x", "\\udc00y"]}', '{"\\ud83d": 1}', '"\ud800"']
)
def test_what_is_read_exactly_holds_no_half_of_a_character(text: str) -> None:
    with pytest.raises(LoneSurrogate):
        decode_exact(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ('"\\ud83d\\ude00 \ufffd"', "😀 \ufffd"),
        ("[" * 300 + "]" * 300, None),
    ],
)
def test_all_else_is_read_exactly_as_ever(text: str, value: JsonValue) -> None:
    assert decode_exact(text) == decode(text)
    assert value is None or decode_exact(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", '{"a":1,}', "[1 2]", "NaN", "[Infinity]", '["\\ud800", NaN]', "'a'", "1" * 5_000,
        b"\xff", b'"\xff"', "[" * 100_000, '{"a":' * 100_000, "[" * 5_000 + "]" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_json_or_too_much_of_it_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)
    with pytest.raises(ValueError, match=r"."):
        decode_exact(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ('{"file":"/src/ma', {"file": "/src/ma"}),
        ('{"a":1,"b":2', {"a": 1, "b": 2}),
        ('{"a":{"b":1', {"a": {"b": 1}}),
        ('{"items":[1,2,3', {"items": [1, 2, 3]}),
        ('{"a":1,', {"a": 1}),
        ('{"path"', {}),
        ("{", {}),
        ('{"a": "\\u00', {"a": ""}),
    ],
    ids=["whole", "string", "object", "nested", "array", "comma", "key", "brace", "escape"],
)
def test_the_beginning_of_json_is_read_as_far_as_it_goes(text: str, value: JsonValue) -> None:
    assert decode_partial(text) == value


def test_pieces_are_read_better_the_more_have_come() -> None:
    pieces = ('{"file": "/sr', 'c/main.ts", "li', 'nes": 3}')
    read = [decode_partial("".join(pieces[:count])) for count in (1, 2, 3)]
    assert read == [
        {"file": "/sr"},
        {"file": "/src/main.ts"},
        {"file": "/src/main.ts", "lines": 3},
    ]


@pytest.mark.parametrize("text", ["", "x", "}", '{"a": NaN', "[" * 10_000])
def test_what_does_not_begin_as_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_partial(text)


@given(value=VALUES, cut=st.integers(0, 200))
def test_every_beginning_of_an_object_is_read(value: JsonValue, cut: int) -> None:
    text = encode({"a": value}).decode()[: cut + 1]
    assert is_object(decode_partial(text))


def test_objects_are_told_from_the_rest() -> None:
    assert is_object({})
    assert not any(is_object(one) for one in ([], "", 0, None))
    assert as_object({"a": 1}) == {"a": 1}
    assert [as_object(one) for one in ([1], "a", None)] == [{}, {}, {}]


def test_scrubbing_joins_pairs_and_replaces_what_stands_alone() -> None:
    assert scrub("plain") == "plain"
    assert scrub(f"ä{LONE}ö{PAIR}") == "ä\ufffdö😀"
