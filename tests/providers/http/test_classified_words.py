"""What the words of an error come to: make room, try again, or neither."""

import json

import pytest

from agent_core.providers.http.client import is_retryable
from agent_core.providers.http.errors import failure_from_response

OVERFLOW, RETRY, NEITHER = (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("status", "said", "provider", "comes_to"),
    [
        (429, "429 rate limit exceeded", "lab", RETRY),
        (529, "529 overloaded_error", "lab", RETRY),
        (502, "HTTP 502", "lab", RETRY),
        (400, "request id 5029 failed", "lab", NEITHER),
        (429, "insufficient_quota", "lab", NEITHER),
        (401, "invalid api key", "lab", NEITHER),
        (400, "", "lab", NEITHER),
        (400, "", "cerebras", OVERFLOW),
        (400, "too many tokens", "lab", OVERFLOW),
        (429, "Throttling error: Too many tokens, please wait", "lab", RETRY),
        (429, "ThrottlingException: Too many tokens", "lab", RETRY),
        (402, "Insufficient available balance", "lab", NEITHER),
        (429, "Monthly usage limit reached", "lab", NEITHER),
        (503, "Service Unavailable", "lab", RETRY),
        (500, "Internal server error", "lab", RETRY),
        (504, "upstream request timeout", "lab", RETRY),
        (520, "", "lab", RETRY),
        (524, "", "lab", RETRY),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "lab", OVERFLOW),
    ],
)
def test_words_come_to(status: int, said: str, provider: str, comes_to: tuple[bool, bool]) -> None:
    body = json.dumps({"error": {"message": said}}).encode() if said else b""
    failure = failure_from_response(
        status=status, headers={}, body=body, provider=provider, now_ms=0
    )
    assert (failure.reason == "context_overflow", is_retryable(failure)) == comes_to
