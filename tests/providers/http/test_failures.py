"""Refusals of every shape become the right kind of error."""

import json
from typing import Any

import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, StopReason, Text, Usage
from agent_core.providers.http.client import is_retryable
from agent_core.providers.http.errors import (
    failure_from_response,
    is_overflow_text,
    overflowed_silently,
    retry_after,
)

NOW_MS = 1_700_000_000_000


def failed(status: int, body: Any, headers: dict[str, str] | None = None) -> ProviderError:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return failure_from_response(
        status=status, headers=headers or {}, body=raw, provider="lab", now_ms=NOW_MS
    )


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


TABLE: list[tuple[int, Any, str]] = [
    (400, error("Input is too long for requested model."), "context_overflow"),
    (
        400,
        {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."},
        "context_overflow",
    ),
    (400, error("Prompt exceeds max length", code="1261"), "context_overflow"),
    (
        400,
        error(
            "API 调用参数有误。Request 9 input tokens exceeds the model's maximum context length 8"
        ),
        "context_overflow",
    ),
    (400, error("invalid params, context window exceeds limit (2013)"), "context_overflow"),
    (400, error("invalid params, invalid role (2013)"), "invalid_request"),
    (
        400,
        error("Please reduce the length of the messages. Current length is 9 while limit is 8"),
        "context_overflow",
    ),
    (
        400,
        error("prompt token count of 9 exceeds the limit of 8", code=""),
        "context_overflow",
    ),
    (
        400,
        {"error": "The number of tokens to keep is too big (n_keep: 9>= n_ctx: 8)"},
        "context_overflow",
    ),
    (500, error("x", type="exceed_context_size_error"), "context_overflow"),
    (400, {"error": {"code": "too_many_prompt_tokens", "message": "m"}}, "context_overflow"),
    (429, error("High concurrency usage of this API", code="1302"), "rate_limit"),
    (429, error("速率限制", code=1302), "rate_limit"),
    (429, {"message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"}, "rate_limit"),
    (429, error("prompt is too long: 210000 tokens > 200000 maximum"), "rate_limit"),
    (400, error("Service tier capacity exceeded", type="invalid_request_error"), "server"),
    (429, "quota exceeded", "quota"),
    (400, error("Your credit balance is too low. Please go to Plans & Billing."), "quota"),
    (424, {"message": "The request failed while processing the model"}, "server"),
    (400, {"message": "The provided model identifier is invalid."}, "not_found"),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "invalid_request"),
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
    made = failed(200, error("prompt is too long", code=400))
    assert (made.reason, made.status) == ("context_overflow", 400)


def test_an_output_limit_is_no_full_window():
    assert failed(200, error("Token limit reached", code=400)).reason == "invalid_request"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (error("something odd"), "server"),
        (error("bad", type="invalid_request_error"), "invalid_request"),
        (error("slow down", type="rate_limit_error"), "rate_limit"),
    ],
    ids=["no-class", "request", "rate"],
)
def test_a_200_itself_says_nothing_of_what_went_wrong(body: Any, reason: str):
    assert failed(200, body).reason == reason


@pytest.mark.parametrize(
    ("status", "name", "reason"),
    [
        (400, "ThrottlingException", "rate_limit"),
        (400, "ThrottlingException:http://internal.amazon.com/coral/", "rate_limit"),
        (400, "ValidationException", "context_overflow"),
    ],
)
def test_bedrock_names_the_class_in_a_header(status: int, name: str, reason: str):
    body = {"message": "Too many tokens"}
    assert failed(status, body, {"x-amzn-errortype": name}).reason == reason


def google(quota: str, **more: Any) -> dict[str, Any]:
    violations = {"violations": [{"quotaId": quota}]}
    details = [violations, {"retryDelay": "48s"}]
    return error(
        "You exceeded your current quota.", status="RESOURCE_EXHAUSTED", details=details, **more
    )


def test_google_calls_a_rate_a_quota():
    minute = failed(429, google("GenerateContentInputTokensPerModelPerMinute"))
    assert (minute.reason, minute.retry_after_s) == ("rate_limit", 48.0)
    assert (
        failed(429, google("GenerateRequestsPerDayPerProjectPerModel-FreeTier")).reason == "quota"
    )


@pytest.mark.parametrize(
    ("moment_ms", "wait"),
    [(NOW_MS + 12_500, 12.5), (NOW_MS - 1, None), ("soon", None)],
    ids=["ahead", "over", "no-number"],
)
def test_a_reset_that_a_gateway_passes_on_is_waited_for(moment_ms: object, wait: float | None):
    headers = {"X-RateLimit-Limit": "1", "X-RateLimit-Reset": str(moment_ms)}
    made = failed(429, error("Rate limit exceeded", code=429, metadata={"headers": headers}))
    assert (made.reason, made.retry_after_s) == ("rate_limit", wait)


@pytest.mark.parametrize(
    ("provider", "body", "reason"),
    [
        ("cerebras", b"", "context_overflow"),
        ("cerebras", b'{"message":"no"}', "invalid_request"),
        ("lab", b"", "invalid_request"),
    ],
)
def test_a_400_without_a_word_is_cerebras_way_to_tell_of_a_full_context(
    provider: str, body: bytes, reason: str
):
    made = failure_from_response(
        status=400, headers={}, body=body, provider=provider, now_ms=NOW_MS
    )
    assert made.reason == reason


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
    assert failed(429, error("Please retry after 10 seconds.")).retry_after_s == 10.0
    assert failed(429, {"error": "wait 1 minute 30 seconds"}).retry_after_s == 90.0
    assert failed(429, error("retry in 3 mode")).retry_after_s is None
    assert failed(429, error("try again in 5s"), {"retry-after": "0"}).retry_after_s == 5.0
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
