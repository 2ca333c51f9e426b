"""What a server sends instead of a stream of events is read too, or told as what it is."""

import json
from typing import Any

import pytest

from agent_core.providers.streaming import WHOLE_BYTES
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import Outcome, ask, model_at

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
