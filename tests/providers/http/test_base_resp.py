"""An error that stands beside an empty answer of status 200 is read as the error that it is."""

import json
from typing import Any

import pytest

from agent_core.providers import WireApi
from agent_core.providers.http.client import is_retryable
from agent_core.providers.http.errors import exposed
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import ask, model_at

CODES = {
    1002: ("rate_limit", 429, True),
    1004: ("auth", 401, False),
    1008: ("quota", 402, False),
    2013: ("invalid_request", 400, False),
    1000: ("server", 500, True),
    1039: ("server", 500, True),
}
WORDS = {
    "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}],
    "base_resp": {"status_code": 0, "status_msg": ""},
}
WHOLE = {
    "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}],
    "base_resp": {"status_code": 0, "status_msg": "success"},
}


def failed(code: Any, message: Any = "it failed") -> dict[str, Any]:
    return {"id": "1", "choices": None, "base_resp": {"status_code": code, "status_msg": message}}


@pytest.mark.parametrize("api", ["openai-completions", "anthropic-messages", "openai-responses"])
@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize("code", CODES)
async def test_a_code_beside_an_answer_is_an_error_of_its_kind(
    code: int, form: str, api: WireApi, pools: Pools
) -> None:
    told = failed(code)
    steps = sse(told) if form == "stream" else [json.dumps(told).encode()]
    async with loopback(Reply(steps)) as server:
        error = (await ask(model_at(server.url, api, pools()))).error
    assert error is not None
    assert (error.reason, error.status, is_retryable(error)) == CODES[code]
    assert f"it failed (status_code {code})" in str(error)


async def test_a_full_context_is_told_from_other_bad_requests(pools: Pools) -> None:
    told = failed(2013, "invalid params, context window exceeds limit")
    async with loopback(Reply([json.dumps(told).encode()])) as server:
        error = (await ask(model_at(server.url, "openai-completions", pools()))).error
    assert error is not None
    assert error.reason == "context_overflow"


@pytest.mark.parametrize(
    "steps", [sse(WORDS, "[DONE]"), [json.dumps(WHOLE).encode()]], ids=["stream", "whole"]
)
async def test_the_code_of_success_is_none(steps: list[bytes], pools: Pools) -> None:
    async with loopback(Reply(steps)) as server:
        outcome = await ask(model_at(server.url, "openai-completions", pools()))
    assert outcome.error is None
    assert outcome.text == "Hello"


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"base_resp": None},
        {"base_resp": "x"},
        {"base_resp": {}},
        {"base_resp": {"status_code": "1002"}},
        {"base_resp": {"status_code": True}},
        {"error": {"message": "m"}, "base_resp": {"status_code": 1002}},
    ],
    ids=str,
)
def test_what_is_no_such_error_stays_as_it_is(told: dict[str, Any]) -> None:
    assert exposed(told) is told


def test_an_error_without_words_says_so() -> None:
    assert exposed({"base_resp": {"status_code": 7, "status_msg": None}})["error"] == {
        "message": "no text (status_code 7)",
        "code": 500,
    }
