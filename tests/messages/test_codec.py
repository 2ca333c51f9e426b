"""Messages as JSON: every kind, both ways, and nothing lost of what we do not know."""

import json

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import JsonObject, ToolCallId
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Cost,
    CustomMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_core.messages.codec import StorableMessage, decode_message, encode_message

COST = {"input": 0.5, "output": 0.25, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.75}
USAGE = {
    "input": 10,
    "output": 5,
    "cacheRead": 3,
    "cacheWrite": 2,
    "reasoning": 4,
    "totalTokens": 20,
    "cost": COST,
}

PAIRS: dict[str, tuple[StorableMessage, JsonObject]] = {
    "user": (
        UserMessage(content=(Text(text="hi"), Image(mime="image/png", data="QQ==")), at_ms=7),
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "data": "QQ==", "mimeType": "image/png"},
            ],
            "timestamp": 7,
        },
    ),
    "assistant": (
        AssistantMessage(
            content=(
                Thinking(text="hm", signature="sig"),
                Thinking(text="", signature="hid", redacted=True),
                Text(text="ok", signature="t"),
                ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "a"}, signature="ts"),
                ToolCall(
                    id=ToolCallId("c2"), name="edit", arguments={}, arguments_error="no JSON: {"
                ),
            ),
            api="anthropic-messages",
            provider="lab",
            model="x/y:z",
            stop_reason="tool_use",
            usage=Usage(
                input=10,
                output=5,
                cache_read=3,
                cache_write=2,
                reasoning=4,
                cost=Cost(input=0.5, output=0.25),
            ),
            error="e",
            raw_stop_reason="tool_calls",
            response_id="r1",
            at_ms=8,
        ),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                {
                    "type": "thinking",
                    "thinking": "",
                    "thinkingSignature": "hid",
                    "redacted": True,
                },
                {"type": "text", "text": "ok", "textSignature": "t"},
                {
                    "type": "toolCall",
                    "id": "c1",
                    "name": "read",
                    "arguments": {"path": "a"},
                    "thoughtSignature": "ts",
                },
                {
                    "type": "toolCall",
                    "id": "c2",
                    "name": "edit",
                    "arguments": {},
                    "argumentsError": "no JSON: {",
                },
            ],
            "api": "anthropic-messages",
            "provider": "lab",
            "model": "x/y:z",
            "usage": USAGE,
            "stopReason": "toolUse",
            "errorMessage": "e",
            "rawStopReason": "tool_calls",
            "responseId": "r1",
            "timestamp": 8,
        },
    ),
    "toolResult": (
        ToolResultMessage(
            call_id=ToolCallId("c1"),
            tool_name="bash",
            content=(Text(text="out"),),
            details={"exitCode": 1, "parts": [1, None]},
            is_error=True,
            duration_ms=12,
            at_ms=9,
        ),
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "bash",
            "content": [{"type": "text", "text": "out"}],
            "details": {"exitCode": 1, "parts": [1, None]},
            "isError": True,
            "durationMs": 12,
            "timestamp": 9,
        },
    ),
    "a call that was not done": (
        ToolResultMessage(
            call_id=ToolCallId("c1"),
            tool_name="bash",
            content=(Text(text="no"),),
            is_error=True,
            unfinished="blocked",
            at_ms=9,
        ),
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "bash",
            "content": [{"type": "text", "text": "no"}],
            "isError": True,
            "unfinished": "blocked",
            "timestamp": 9,
        },
    ),
    "bashExecution": (
        BashMessage(
            command="ls",
            output="a\n",
            exit_code=0,
            truncated=True,
            full_output="/logs/x",
            exclude_from_context=True,
            at_ms=10,
        ),
        {
            "role": "bashExecution",
            "command": "ls",
            "output": "a\n",
            "exitCode": 0,
            "cancelled": False,
            "truncated": True,
            "fullOutputPath": "/logs/x",
            "excludeFromContext": True,
            "timestamp": 10,
        },
    ),
    "custom": (
        CustomMessage(
            custom_type="note", content=(Text(text="x"),), display=False, details=1, at_ms=11
        ),
        {
            "role": "custom",
            "customType": "note",
            "content": [{"type": "text", "text": "x"}],
            "display": False,
            "details": 1,
            "timestamp": 11,
        },
    ),
}


@pytest.mark.parametrize("role", PAIRS)
def test_each_kind_of_message_has_its_json_both_ways(role: str) -> None:
    message, raw = PAIRS[role]
    assert encode_message(message) == raw
    assert decode_message(raw, at_ms=0) == (message, {})


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("just words", (Text(text="just words"),)),
        ("", ()),
        (None, ()),
        ([], ()),
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_content_that_is_a_string_or_null_is_read(role: str, content: object, read: object) -> None:
    decoded = decode_message(_json({"role": role, "content": content}), at_ms=5)
    assert decoded is not None
    message, extra = decoded
    assert isinstance(message, UserMessage | AssistantMessage)
    assert (message.content, message.at_ms, extra) == (read, 5, {})


def test_content_of_another_type_is_empty_and_kept() -> None:
    raw = _json({"role": "user", "content": {"text": "x"}, "timestamp": 1})
    decoded = decode_message(raw, at_ms=0)
    assert decoded is not None
    assert decoded == (UserMessage(content=(), at_ms=1), {"content": {"text": "x"}})
    assert encode_message(decoded[0], extra=decoded[1]) == raw


@pytest.mark.parametrize(
    "odd",
    [
        {"content": [{"type": "audio", "data": "QQ=="}, {"type": "text", "text": "t"}]},
        {"content": [{"type": "text", "text": "t", "citations": [1]}]},
        {"content": [{"type": "text", "text": "t", "textSignature": 5}]},
        {"content": [{"type": "toolCall", "id": "c", "name": "n", "arguments": "x"}]},
        {"content": ["bare", 5, None]},
        {"diagnostics": {"a": [1]}, "responseModel": "m2", "endTurn": True},
        {"usage": {**USAGE, "cacheWrite1h": 3}},
        {"usage": {**USAGE, "totalTokens": 99}},
        {"usage": {**USAGE, "cost": {**COST, "total": 9.5}}},
        {"usage": {**USAGE, "cost": {**COST, "extra": 9.5}}},
        {"usage": 5},
        {"stopReason": "somethingNew"},
    ],
    ids=json.dumps,
)
def test_what_we_do_not_know_of_a_message_is_written_back(odd: dict[str, object]) -> None:
    raw = _json({**PAIRS["assistant"][1], **odd})
    decoded = decode_message(raw, at_ms=0)
    assert decoded is not None
    message, extra = decoded
    assert set(extra) == set(odd)
    assert encode_message(message, extra=extra) == raw


def test_an_unknown_price_stays_unknown_and_reads_as_zero_elsewhere() -> None:
    usage = Usage(input=5, output=1)
    message = AssistantMessage(
        content=(), api="a", provider="p", model="m", stop_reason="stop", usage=usage, at_ms=1
    )
    raw = encode_message(message)
    assert _json(raw["usage"])["cost"] == dict.fromkeys(COST, 0.0)
    assert decode_message(_json(raw), at_ms=0) == (message, {})


@pytest.mark.parametrize(
    "numbers",
    [
        {"input": -5},
        {"input": "12"},
        {"input": 1e400},
        {"cost": {"input": 10**400, "total": None}},
        {"input": True, "cost": "free"},
    ],
)
def test_numbers_that_make_no_sense_count_as_nothing(numbers: dict[str, object]) -> None:
    decoded = decode_message(
        {"role": "assistant", "content": [], "usage": numbers},  # pyright: ignore[reportArgumentType]
        at_ms=0,
    )
    assert decoded is not None
    message = decoded[0]
    assert isinstance(message, AssistantMessage)
    assert message.usage.total in {0, 1}
    assert (message.usage.cost or Cost()).total == 0


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "toolResult", "content": []},
        {"role": "bashExecution", "output": "x"},
        {"role": "assistant", "content": [], "provider": 5},
    ],
)
def test_a_message_without_what_it_needs_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="field"):
        decode_message(_json(raw), at_ms=0)


def test_a_role_that_we_do_not_know_is_not_guessed() -> None:
    assert decode_message({"role": "system", "content": "x"}, at_ms=0) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    ["content", "usage", "stopReason", "provider", "timestamp", "toolCallId", "details", "zz"]
)
_BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "thinking", "toolCall", "new"])},
        optional={
            "text": _JSON,
            "thinking": _JSON,
            "id": st.text(max_size=3),
            "name": st.text(max_size=3),
            "arguments": _JSON,
            "redacted": st.booleans(),
        },
    ),
    max_size=3,
)


@given(
    role=st.sampled_from(["user", "assistant", "toolResult", "bashExecution", "custom"]),
    content=_BLOCKS | _JSON,
    rest=st.dictionaries(_KEYS, _JSON, max_size=4),
)
def test_any_json_is_read_or_refused_and_reading_what_was_written_gives_the_same(
    role: str, content: object, rest: dict[str, object]
) -> None:
    raw = _json({"command": "c", "toolCallId": "c", **rest, "role": role, "content": content})
    try:
        decoded = decode_message(raw, at_ms=0)
    except ValueError:
        return
    assert decoded is not None
    written = encode_message(decoded[0], extra=decoded[1])
    assert decode_message(_json(written), at_ms=0) == decoded


def _json(value: object) -> JsonObject:
    return json.loads(json.dumps(value))
