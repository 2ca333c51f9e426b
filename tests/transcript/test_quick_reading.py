"""The quick ways of reading a line give what the careful way gives, or leave the line to it."""

from typing import Any, cast

import pytest
from hypothesis import example, given, strategies as st

from agent_core.kernel import JsonObject, JsonValue
from agent_core.messages import codec
from agent_core.transcript import ColdEntry, LineLocation
from agent_core.transcript.codec import decode_entry
from agent_core.transcript.cold_entries import PREVIEW_CHARS, cooled, preview_text
from agent_core.transcript.cold_reader import read_cold

PLACE = LineLocation(offset=100, size=10)
COST = {"input": 0.5, "output": 0.25, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.75}
USAGE = {"input": 10, "output": 5, "totalTokens": 15}
ANSWER: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}],
    "api": "a",
    "provider": "p",
    "model": "m",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 8,
}
RESULT: dict[str, Any] = {
    "role": "toolResult",
    "toolCallId": "c1",
    "toolName": "read",
    "content": [{"type": "text", "text": "out"}],
    "isError": False,
    "timestamp": 9,
}
USER: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "text", "text": "hi"}],
    "timestamp": 7,
}
STAMP = "2026-01-01T00:00:00.000Z"

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1, -1, 1.5, float(2**70), 2**70, "", "x", "stop", "error", [], {}, [None]]
)
BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "words  of\na text"},
        {"type": "text", "text": "  \n "},
        {"type": "text", "text": "\u00a0 begins blank \u2028 and goes on " * 9},
        {"type": "text", "text": "a", "textSignature": "s"},
        {"type": "text", "text": 1},
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
        {"type": "thinking", "thinking": 3},
        {"type": "toolCall", "id": "c", "name": "edit", "arguments": {"a": 1}},
        {"type": "toolCall", "id": "c", "name": "edit", "arguments": "{"},
        {"type": "toolCall", "id": "c", "name": "edit", "argumentsError": "no JSON"},
        {"type": "toolCall", "id": "", "name": ""},
        {"type": "toolCall", "name": "edit"},
        {"type": "image", "data": "QQ==", "mimeType": "image/png"},
        {"type": "future", "text": "x"},
        {"text": "x"},
        "words",
        None,
    ]
)
USAGES = st.builds(
    lambda parts, cost: {**USAGE, **parts, **({} if cost is None else {"cost": cost})},
    st.dictionaries(
        st.sampled_from(["input", "cacheRead", "cacheWrite", "reasoning", "totalTokens", "x"]), ODD
    ),
    st.none()
    | st.just(COST)
    | st.dictionaries(st.sampled_from(list(COST)), ODD).map(lambda odd: {**COST, **odd}),
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Give a message with some fields that nobody expects."""
    raw = dict(draw(st.sampled_from([ANSWER, RESULT, USER])))
    raw["content"] = draw(st.lists(BLOCKS, max_size=3) | st.just("words") | ODD)
    if raw["role"] == "assistant":
        raw["usage"] = draw(USAGES | ODD)
        raw["stopReason"] = draw(st.sampled_from(["stop", "length", "toolUse", "error", "aborted"]))
    more = ["rawStopReason", "responseId", "errorMessage", "details", "durationMs", "future"]
    raw |= draw(st.dictionaries(st.sampled_from([*raw, *more]), ODD, max_size=2))
    for key in draw(st.lists(st.sampled_from(list(raw)), max_size=1)):
        del raw[key]
    return raw


@st.composite
def lines(draw: st.DrawFn) -> dict[str, Any]:
    """Give the line of a message, now and then an odd one."""
    raw = {
        "type": "message",
        "id": "b",
        "parentId": draw(st.sampled_from([None, "a"])),
        "timestamp": draw(st.sampled_from([STAMP, "1970-01-01T00:00:00Z", "soon", "2026-01-01"])),
        "message": draw(messages()),
    }
    raw |= draw(st.dictionaries(st.sampled_from([*raw, "future"]), ODD, max_size=1))
    for key in draw(st.lists(st.sampled_from(list(raw)), max_size=1)):
        del raw[key]
    return raw


@given(messages())
@example(ANSWER)
@example(RESULT)
@example(USER)
def test_a_plain_message_is_read_as_the_careful_way_reads_it(raw: dict[str, Any]) -> None:
    quickly = codec.decode_exact(cast("JsonObject", raw))
    if quickly is not None:
        assert codec.decode_odd(cast("JsonObject", raw), type(quickly), at_ms=3) == (quickly, {})
        again = codec.encode_message(quickly)
        assert codec.decode_message(again, at_ms=3) == (quickly, {})


@given(lines())
def test_what_stays_of_a_line_is_what_cooling_it_leaves(raw: dict[str, JsonValue]) -> None:
    cold = read_cold(raw, PLACE)
    if cold is not None:
        assert cold == cooled(decode_entry(raw), PLACE)


@given(st.text(st.sampled_from("ab .\n\t\u00a0\u2028\x1c\x00ü本"), max_size=200))
@example("a" * PREVIEW_CHARS + " b")
@example("a" * (PREVIEW_CHARS - 1) + " b")
@example("a" * (PREVIEW_CHARS - 1) + " ")
@example("a" * (PREVIEW_CHARS - 1) + "  b")
def test_first_words_are_those_of_the_whole_text_on_one_line(text: str) -> None:
    begun = " ".join(text.lstrip()[: 2 * PREVIEW_CHARS].split())[:PREVIEW_CHARS]
    assert preview_text(text) == begun


@pytest.mark.parametrize("message", [ANSWER, RESULT, USER], ids=lambda raw: raw["role"])
def test_the_usual_messages_go_the_quick_way(message: dict[str, Any]) -> None:
    raw: dict[str, JsonValue] = {
        "type": "message",
        "id": "b",
        "parentId": "a",
        "timestamp": STAMP,
        "message": message,
    }
    assert codec.decode_exact(message) is not None
    assert isinstance(read_cold(raw, PLACE), ColdEntry)
