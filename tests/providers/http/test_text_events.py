"""Events that only add text are read together; the answer is the one that reading them one by one gives."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_core.kernel import json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.http.stream import SseEvent, StreamReader
from agent_core.providers.model import ModelInfo
from agent_core.providers.wire.anthropic.stream import AnthropicReader
from agent_core.providers.wire.chat.stream import ChunkReader
from agent_core.providers.wire.responses.stream import ResponseReader
from tests.providers.replay import LAB
from tests.support.harness.clock import FakeClock

Make = Callable[[ModelInfo, FakeClock], StreamReader]
Events = list[dict[str, Any]]

CHAT: Events = [
    {
        "id": "c1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}}],
    }
    for text in ("One ", "two ", "", "three")
]
CHAT_END = {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
ANTHROPIC: Events = [
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    for text in ("One ", "two ", "", "three")
]
ITEM = {"type": "message", "id": "m1", "content": []}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": ITEM}
RESPONSES: Events = [
    {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": text}
    for text in ("One ", "two ", "", "three")
]

TOGETHER: dict[str, tuple[Make, Events, Events]] = {
    "chat": (ChunkReader, [], CHAT),
    "chat, nulls": (
        ChunkReader,
        [],
        [
            {
                **CHAT[0],
                "usage": None,
                "choices": [{**CHAT[0]["choices"][0], "finish_reason": None, "logprobs": None}],
            }
        ],
    ),
    "anthropic": (AnthropicReader, [BLOCK], ANTHROPIC),
    "responses": (ResponseReader, [ADDED], RESPONSES),
}


def choice(**fields: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": {"content": "x"}, **fields}]}


ODD: dict[str, tuple[Make, Events, dict[str, Any]]] = {
    "chat, a thought": (
        ChunkReader,
        CHAT,
        choice(delta={"content": "x", "reasoning_content": "t"}),
    ),
    "chat, a thought of another name": (
        ChunkReader,
        CHAT,
        choice(delta={"content": "x", "reasoning_text": "t"}),
    ),
    "chat, a call": (
        ChunkReader,
        CHAT,
        choice(
            delta={
                "content": "x",
                "tool_calls": [
                    {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
                ],
            }
        ),
    ),
    "chat, a refusal": (ChunkReader, CHAT, choice(delta={"content": "x", "refusal": "no"})),
    "chat, an end": (ChunkReader, CHAT, choice(finish_reason="length")),
    "chat, usage": (
        ChunkReader,
        CHAT,
        {**choice(), "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ),
    "chat, usage in the choice": (
        ChunkReader,
        CHAT,
        choice(usage={"prompt_tokens": 3, "completion_tokens": 4}),
    ),
    "chat, usage of Groq": (
        ChunkReader,
        CHAT,
        {**choice(), "x_groq": {"usage": {"prompt_tokens": 3}}},
    ),
    "chat, an error": (ChunkReader, CHAT, {**choice(), "error": {"message": "no"}}),
    "chat, an error in the choice": (ChunkReader, CHAT, choice(error={"message": "no"})),
    "chat, an object that is an error": (ChunkReader, CHAT, {**choice(), "object": "error"}),
    "chat, a second choice": (ChunkReader, CHAT, choice(index=1)),
    "chat, two choices": (ChunkReader, CHAT, {"choices": CHAT[0]["choices"] + CHAT[1]["choices"]}),
    "chat, no choice": (ChunkReader, CHAT, {"choices": []}),
    "chat, a list of pieces": (
        ChunkReader,
        CHAT,
        choice(delta={"content": [{"type": "text", "text": "x"}]}),
    ),
    "chat, an id that is none": (ChunkReader, CHAT, {**choice(), "id": 7}),
    "anthropic, another block": (
        AnthropicReader,
        [BLOCK, {**BLOCK, "index": 1}, *ANTHROPIC],
        {**ANTHROPIC[0], "index": 1},
    ),
    "anthropic, an unknown block": (
        AnthropicReader,
        [BLOCK, *ANTHROPIC],
        {**ANTHROPIC[0], "index": 9},
    ),
    "anthropic, text for a thought": (
        AnthropicReader,
        [{**BLOCK, "content_block": {"type": "thinking", "thinking": ""}}],
        ANTHROPIC[0],
    ),
    "responses, another item": (
        ResponseReader,
        [ADDED, *RESPONSES],
        {**RESPONSES[0], "item_id": "m2", "output_index": 1},
    ),
    "responses, an item that was not begun": (ResponseReader, [], RESPONSES[0]),
    "responses, no item": (
        ResponseReader,
        [ADDED, *RESPONSES],
        {"type": "response.output_text.delta", "delta": "x"},
    ),
}


def events_of(events: Events) -> list[SseEvent]:
    return [SseEvent(b"", json.encode(event)) for event in events]


def outcome(make: Make, batches: list[list[SseEvent]], *, together: bool) -> object:
    """Return the parts of an answer, its content and usage, or its failure."""
    reader = make(LAB, FakeClock())
    try:
        for batch in batches:
            if together and reader.read_texts(batch):
                continue
            for event in batch:
                reader.read(json.as_object(json.decode(event.data)), name=event.name)
        parts = reader.take()
        message = reader.answer().message
    except ProviderError as error:
        return type(error), str(error), error.reason
    return parts, message.content, message.usage, message.response_id, message.stop_reason


@pytest.mark.parametrize("name", TOGETHER)
def test_text_is_read_in_one_step(name: str):
    make, before, texts = TOGETHER[name]
    reader = make(LAB, FakeClock())
    for event in before:
        reader.read(event, name=b"")
    assert reader.read_texts(events_of(texts))
    batches = [events_of(before), events_of(texts)]
    assert outcome(make, batches, together=True) == outcome(make, batches, together=False)


@pytest.mark.parametrize("name", ODD)
def test_anything_else_is_read_one_by_one(name: str):
    make, before, odd = ODD[name]
    end = [CHAT_END] if make is ChunkReader else []
    for batches in (
        [before, [odd], end],
        [[*before, odd], end],
        [before, [odd, *before, odd]],
    ):
        read = [events_of(batch) for batch in batches]
        assert outcome(make, read, together=True) == outcome(make, read, together=False)


BAD = {
    "no JSON": b"{",
    "two values": b'{"choices":[{"delta":{"content":"x"}}]} {}',
    "half a character": rb'{"choices":[{"delta":{"content":"\ud83d"}}]}',
    "half a character before others": rb'{"choices":[{"delta":{"content":"\ud83d and more text"}}]}',
    "the other half": rb'{"choices":[{"delta":{"content":"a\ude00b"}}]}',
    "no UTF-8": b'{"choices":[{"delta":{"content":"\xff"}}]}',
    "no number": b'{"choices":[{"delta":{"content":"x"}}],"created":NaN}',
    "the closing mark": b"[DONE]",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_text_event_is_left_alone(name: str):
    reader = ChunkReader(LAB, FakeClock())
    good = events_of(CHAT)
    assert not reader.read_texts([*good, SseEvent(b"", BAD[name]), *good])
    assert not reader.read_texts([SseEvent(b"error", good[0].data)])
    assert not reader.read_texts([])
    assert reader.take() == []
