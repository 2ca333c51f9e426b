"""Long answers as each API streams them, ready to be sent."""

import json
import struct
from binascii import crc32
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_core.providers import WireApi

WORD = "word "
EVENT_STREAM = "application/vnd.amazon.eventstream"
SSE = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """One answer of one API."""

    api: WireApi
    body: Callable[[int], bytes]
    """Gives an answer of so many words, a delta each."""
    content_type: str = SSE
    frames: bool = False
    """Binary frames instead of lines."""


def _data(*events: Any, named: bool = False) -> bytes:
    return b"".join(
        (b"event: %s\n" % event["type"].encode() if named else b"")
        + b"data: %s\n\n" % json.dumps(event, separators=(",", ":")).encode()
        for event in events
    )


def _chat(words: int) -> bytes:
    head: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "model": "m"}

    def chunk(finish: str | None, **delta: str) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    usage = {"prompt_tokens": 10, "completion_tokens": words}
    return (
        _data(chunk(None, content=WORD)) * words
        + _data(chunk("stop"), {**head, "choices": [], "usage": usage})
        + b"data: [DONE]\n\n"
    )


def _anthropic(words: int) -> bytes:
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": WORD}
    start = {"id": "m1", "usage": {"input_tokens": 10, "output_tokens": 1}}
    end = {"stop_reason": "end_turn"}
    return (
        _data(
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": block},
            named=True,
        )
        + _data({"type": "content_block_delta", "index": 0, "delta": delta}, named=True) * words
        + _data(
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": words}},
            {"type": "message_stop"},
            named=True,
        )
    )


def _responses(words: int) -> bytes:
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    said = {**item, "content": [{"type": "output_text", "text": WORD * words}]}
    usage = {"input_tokens": 10, "output_tokens": words}
    done = {"id": "r1", "status": "completed", "output": [said], "usage": usage}
    return (
        _data(
            {"type": "response.created", "response": {"id": "r1", "status": "in_progress"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            named=True,
        )
        + _data({"type": "response.output_text.delta", **place, "delta": WORD}, named=True) * words
        + _data(
            {"type": "response.output_item.done", "output_index": 0, "item": said},
            {"type": "response.completed", "response": done},
            named=True,
        )
    )


def _gemini(words: int) -> bytes:
    counts = {"promptTokenCount": 10, "candidatesTokenCount": words}

    def event(**more: str) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": WORD}]}
        return {
            "candidates": [{"content": content, "index": 0, **more}],
            "usageMetadata": counts,
            "modelVersion": "m",
        }

    lines = _data(event()) * (words - 1) + _data(event(finishReason="STOP"))
    return lines.replace(b"\n", b"\r\n")


def _ollama(words: int) -> bytes:
    def line(text: str, **more: Any) -> bytes:
        message = {"role": "assistant", "content": text}
        return (
            json.dumps({"model": "m", "message": message, "done": False, **more}).encode() + b"\n"
        )

    return line(WORD) * words + line("", done=True, done_reason="stop", eval_count=words)


def _bedrock(words: int) -> bytes:
    delta = {"contentBlockIndex": 0, "delta": {"text": WORD}, "p": "abcdefgh"}
    return (
        _frame("messageStart", {"role": "assistant"})
        + _frame("contentBlockDelta", delta) * words
        + _frame("contentBlockStop", {"contentBlockIndex": 0})
        + _frame("messageStop", {"stopReason": "end_turn"})
        + _frame("metadata", {"usage": {"inputTokens": 10, "outputTokens": words}})
    )


def _frame(name: str, payload: Mapping[str, Any]) -> bytes:
    named = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes((len(key),)) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in named.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", len(headers) + len(body) + 16, len(headers))
    whole = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return whole + struct.pack(">I", crc32(whole))


FLOODS = (
    Flood(api="openai-completions", body=_chat),
    Flood(api="mistral-conversations", body=_chat),
    Flood(api="openai-responses", body=_responses),
    Flood(api="azure-openai-responses", body=_responses),
    Flood(api="anthropic-messages", body=_anthropic),
    Flood(api="ollama-chat", body=_ollama, content_type="application/x-ndjson"),
    Flood(api="google-generative-ai", body=_gemini),
    Flood(api="google-vertex", body=_gemini),
    Flood(api="bedrock-converse-stream", body=_bedrock, content_type=EVENT_STREAM, frames=True),
)
