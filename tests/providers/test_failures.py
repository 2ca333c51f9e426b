"""Refusals of every shape become the right kind of error."""

import json
from typing import Any

import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, StopReason, Text, Usage
from agent_core.providers.failures import failure_from_response, retry_after
from agent_core.providers.overflow import is_overflow_text, overflowed_silently
from agent_core.providers.retry import is_retryable

NOW_MS = 1_700_000_000_000


def failed(status: int, body: Any, headers: dict[str, str] | None = None) -> ProviderError:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return failure_from_response(
        status=status, headers=headers or {}, body=raw, provider="lab", now_ms=NOW_MS
    )


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


TABLE: list[tuple[int, Any, str]] = [
    (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "context_overflow"),
    (400, error("x", code="context_length_exceeded"), "context_overflow"),
    (413, "", "context_overflow"),
    (413, error("Request too large ... (TPM)", code="rate_limit_exceeded"), "rate_limit"),
    (429, error("Too many tokens, please wait before trying again."), "rate_limit"),
    (
        400,
        {
            "message": "Tokens per minute limit exceeded - too many tokens processed.",
            "type": "too_many_requests_error",
        },
        "rate_limit",
    ),
    (429, error("The engine is currently overloaded", type="engine_overloaded_error"), "server"),
    (529, error("Overloaded", type="overloaded_error"), "server"),
    (429, error("You exceeded your current quota", code="insufficient_quota"), "quota"),
    (402, error("Insufficient Balance"), "quota"),
    (403, {"error": "your team has used all available credits"}, "quota"),
    (429, error("5 小时的使用上限", code="1308"), "quota"),
    (401, {"detail": "Invalid API Key"}, "auth"),
    (400, {"code": "invalid-argument", "error": "Incorrect API key provided: sk"}, "auth"),
    (400, error("API key not valid. Please pass a valid API key."), "auth"),
    (403, {"message": "The security token included in the request is invalid"}, "auth"),
    (404, error("model: x", type="not_found_error"), "not_found"),
    (400, error("no such model", code="model_not_found"), "not_found"),
    (400, error("Unsupported parameter", code="unsupported_parameter"), "invalid_request"),
    (400, error("request id 5029 failed"), "invalid_request"),
    (500, "", "server"),
    (503, "<html><body>down</body></html>", "server"),
    (408, "", "timeout"),
    (418, "[]", "invalid_request"),
]


@pytest.mark.parametrize(("status", "body", "reason"), TABLE, ids=range(len(TABLE)))
def test_the_reason_is_the_one_to_act_on(status: int, body: Any, reason: str):
    made = failed(status, body)
    assert (made.reason, made.status, made.before_first_byte) == (reason, status, True)


def test_a_gateway_that_answers_200_is_judged_by_the_status_inside():
    made = failed(200, error("Token limit reached", code=400))
    assert (made.reason, made.status) == ("context_overflow", 400)


def test_a_list_around_the_error_is_opened():
    made = failed(
        429,
        [
            {
                "error": {
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "m",
                    "details": [{"retryDelay": "48s"}],
                }
            }
        ],
    )
    assert (made.reason, made.retry_after_s, str(made)) == (
        "rate_limit",
        48.0,
        "lab answered 429: m",
    )


def test_a_wait_in_the_words_counts_when_there_is_no_header():
    assert failed(429, error("try again in 9m38.016s")).retry_after_s == 578.016
    assert failed(429, error("Please try again in 494ms.")).retry_after_s == 0.494
    assert failed(429, error("later"), {"retry-after": "7"}).retry_after_s == 7.0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "1", "retry-after-ms": "494"}, 0.494),
        ({"retry-after": "1", "retry-after-ms": "0"}, 1.0),
        ({"retry-after-ms": "0"}, 0.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2000 22:13:30 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_headers(headers: dict[str, str], wait: float | None):
    assert retry_after(headers, now_ms=NOW_MS) == wait


@pytest.mark.parametrize(
    ("reason", "status", "text", "again"),
    [
        ("network", None, "", True),
        ("timeout", None, "", True),
        ("server", 529, "", True),
        ("protocol", None, "", True),
        ("rate_limit", 429, "rate limit exceeded", True),
        ("rate_limit", 413, "", False),
        ("rate_limit", 429, "Request too large for gpt", False),
        ("quota", 429, "", False),
        ("auth", 401, "", False),
        ("context_overflow", 400, "", False),
        ("refused", None, "", False),
    ],
)
def test_only_what_waiting_may_cure_is_retryable(
    reason: Any,
    status: int | None,
    text: str,
    again: bool,
):
    made = ProviderError(text, reason=reason, provider="lab", status=status)
    assert is_retryable(made) is again


@pytest.mark.parametrize(
    ("text", "overflow"),
    [
        ("too many tokens", True),
        ("Throttling error: Too many tokens, please wait", False),
        ("429 rate limit exceeded", False),
        ("This model's maximum context length is 4097 tokens.", True),
        ("Request 182387 input tokens exceeds the model's maximum context length 202750", True),
        ("Prompt exceeds max length", True),
        ("Input Tokens Exceeded: Number of input tokens exceeds maximum length", True),
        ("prompt too long; exceeded max context length by 1119046 tokens", True),
        ("The total length of all messages is too long.", True),
        ("The input token count (1250074) exceeds the maximum number of tokens", True),
        ("maximum prompt length is 131072 but the request contains", True),
        ("Your request exceeded model token limit: 262144 (requested: 269030)", True),
        ("invalid params, context window exceeds limit (2013)", True),
        ("prompt token count of 9 exceeds the limit of 8", True),
        ("the request exceeds the available context size", True),
        ("Your input exceeds the context window of this model", True),
        ("insufficient_quota", False),
        ("max_tokens is too large", False),
    ],
)
def test_a_full_context_is_told_from_a_rate(text: str, overflow: bool):
    assert is_overflow_text(text) is overflow


@pytest.mark.parametrize(
    ("stop", "read", "cached", "written", "full"),
    [
        ("stop", 150_000, 60_000, 5, True),
        ("stop", 200_000, 0, 5, False),
        ("length", 198_000, 0, 0, True),
        ("length", 197_999, 0, 0, False),
        ("length", 199_000, 0, 5, False),
    ],
)
def test_an_overflow_without_an_error_is_noticed(
    stop: StopReason,
    read: int,
    cached: int,
    written: int,
    full: bool,
):
    message = AssistantMessage(
        content=(Text(text="x"),),
        api="a",
        provider="p",
        model="m",
        stop_reason=stop,
        usage=Usage(input=read, cache_read=cached, output=written),
        at_ms=0,
    )
    assert overflowed_silently(message, context_window=200_000) is full
