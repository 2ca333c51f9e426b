"""What a server sends instead of a stream of events is read too, or told as what it is."""

import json
from typing import Any

import anyio
import pytest

from agent_core.messages import Cost, Usage
from agent_core.providers import Prices, UsageUpdate
from agent_core.providers.http.stream import WHOLE_BYTES
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, Outcome, ask, model_at

API = "openai-completions"
ANSWER = {"choices": [{"message": {"content": "Hellö"}, "finish_reason": "stop"}]}
EVENTS: list[Any] = [
    {"choices": [{"index": 0, "delta": {"content": "Hellö"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]


async def heard(pools: Pools, *pieces: bytes) -> Outcome:
    async with loopback(Reply(pieces)) as server:
        return await ask(model_at(server.url, API, pools()))


def cut(raw: bytes) -> list[bytes]:
    return [raw[start : start + 1] for start in range(len(raw))]


@pytest.mark.parametrize(
    "pieces",
    [
        [json.dumps(ANSWER).encode()],
        cut(json.dumps(ANSWER, ensure_ascii=False, indent=1).encode()),
        [b"\n", b"  \r\n", b"\xef", b"\xbb\xbf", json.dumps(ANSWER).encode(), b"\n\n"],
        [json.dumps(EVENTS).encode()],
        cut(b" \n" + json.dumps(EVENTS, ensure_ascii=False).encode()),
        [b"\n\n", b": waiting\n\n", *sse(*EVENTS)],
    ],
    ids=["whole", "bytes", "behind-blanks", "list", "list-bytes", "events-behind-blanks"],
)
async def test_one_answer_is_read_in_every_form(pieces: list[bytes], pools: Pools):
    outcome = await heard(pools, *pieces)
    assert outcome.error is None
    assert outcome.message is not None
    assert (outcome.message.text, outcome.text) == ("Hellö", "Hellö")


@pytest.mark.parametrize(
    ("body", "reason", "text"),
    [
        ([EVENTS[0]], "protocol", "answered with JSON that is no answer"),
        ([EVENTS[0], {"error": {"message": "Overloaded"}}], "server", "Overloaded"),
        ([], "protocol", "answered with JSON that is no answer"),
        ({"choices": []}, "protocol", "answered with JSON that is no answer"),
        ({"message": "x"}, "protocol", "answered with JSON that is no answer"),
        ({"choices": [{"message": {}, "finish_reason": "network_error"}]}, "server", "unknown"),
        ({"object": "error", "message": "Overloaded"}, "server", "Overloaded"),
        ({"choices": [{"error": {"code": 429, "message": "slow"}}]}, "rate_limit", "slow"),
    ],
    ids=[
        "no-end",
        "error-in-a-list",
        "empty-list",
        "no-choice",
        "other",
        "bad-end",
        "bare-error",
        "error-in-a-choice",
    ],
)
async def test_json_that_is_no_answer_is_told_as_such(
    body: Any, reason: str, text: str, pools: Pools
):
    outcome = await heard(pools, json.dumps(body).encode())
    assert outcome.error is not None
    assert outcome.error.reason == reason
    assert text in str(outcome.error)


async def test_an_answer_in_one_piece_has_a_bound(pools: Pools):
    piece = b" " * 1024 * 1024
    outcome = await heard(pools, b'{"a":', *[piece] * (WHOLE_BYTES // len(piece) + 1))
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"
    assert f"more than {WHOLE_BYTES} bytes" in str(outcome.error)


async def test_a_key_that_is_echoed_in_one_piece_is_masked(pools: Pools):
    body = {"error": {"message": "bad key sk-test-very-secret"}}
    outcome = await heard(pools, json.dumps(body).encode())
    assert outcome.error is not None
    assert "sk-test-very-secret" not in str(outcome.error)


PRICES = Prices(input=3.0, output=15.0)
STARTED = {"type": "message_start", "message": {"usage": {"input_tokens": 5000}}}
SPOKEN: list[Any] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
]
REFUSED: list[Any] = [
    {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 100}},
    {"type": "message_stop"},
]
GEMINI_USAGE = {"promptTokenCount": 5000, "candidatesTokenCount": 0, "totalTokenCount": 5000}
GEMINI: Any = {
    "candidates": [{"content": {"parts": [{"text": "Hel"}]}}],
    "usageMetadata": GEMINI_USAGE,
}
BLOCKED: Any = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": GEMINI_USAGE}
CHAT_ERROR: Any = {
    "choices": [{"delta": {"content": "Hel"}, "finish_reason": "error"}],
    "error": {"code": 502, "message": "gone"},
    "usage": {"prompt_tokens": 5000, "completion_tokens": 0},
}
FAILED: Any = {
    "type": "response.failed",
    "response": {
        "status": "failed",
        "error": {"code": "server_error", "message": "gone"},
        "usage": {"input_tokens": 5000, "output_tokens": 0},
    },
}
FILTERED: Any = {
    "type": "response.incomplete",
    "response": {
        "status": "incomplete",
        "incomplete_details": {"reason": "content_filter"},
        "usage": {"input_tokens": 5000, "output_tokens": 100},
    },
}
OLLAMA: Any = {"done": True, "done_reason": "load", "prompt_eval_count": 5000, "eval_count": 100}


@pytest.mark.parametrize(
    ("api", "events", "output"),
    [
        pytest.param("anthropic-messages", [STARTED, *SPOKEN], 0, id="anthropic-cut"),
        pytest.param("anthropic-messages", [STARTED, *REFUSED], 100, id="anthropic-refused"),
        pytest.param("google-generative-ai", [GEMINI], 0, id="gemini-cut"),
        pytest.param("google-generative-ai", [BLOCKED], 0, id="gemini-blocked"),
        pytest.param("openai-completions", [CHAT_ERROR], 0, id="chat-error"),
        pytest.param("openai-responses", [FAILED], 0, id="responses-failed"),
        pytest.param("openai-responses", [FILTERED], 100, id="responses-filtered"),
    ],
)
async def test_an_answer_that_fails_has_told_what_it_used(
    api: Any, events: list[Any], output: int, pools: Pools
):
    usage = await counted(pools, api, b"".join(sse(*events)))
    cost = Cost(input=0.015, output=output * 15 / 1_000_000)
    assert usage == Usage(input=5000, output=output, cost=cost)


async def test_lines_that_end_badly_have_told_what_they_used(pools: Pools):
    usage = await counted(pools, "ollama-chat", json.dumps(OLLAMA).encode() + b"\n")
    assert (usage.input, usage.output) == (5000, 100)


async def test_an_answer_that_is_left_early_has_told_what_it_used(pools: Pools):
    async with loopback(Reply([b"".join(sse(STARTED)), anyio.Event()])) as server:
        model = model_at(server.url, "anthropic-messages", pools(), prices=PRICES)
        with anyio.fail_after(5):
            async with model.stream(HELLO) as parts:
                first = await anext(parts)
    assert first == UsageUpdate(usage=Usage(input=5000, cost=Cost(input=0.015)))


async def counted(pools: Pools, api: Any, body: bytes) -> Usage:
    """Give the newest counts of an answer that fails."""
    async with loopback(Reply([body])) as server:
        outcome = await ask(model_at(server.url, api, pools(), prices=PRICES))
    assert outcome.error is not None
    (*_, last) = [part.usage for part in outcome.parts if isinstance(part, UsageUpdate)]
    return last
