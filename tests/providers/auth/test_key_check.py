"""A key is tested at its provider before it is stored; only an answer that means a wrong key refuses it."""

from typing import Any

import pytest
from msgspec.structs import replace

from agent_core.providers.auth.key_check import check_key
from agent_core.providers.catalog.catalogue import ProviderInfo, builtin_providers
from tests.providers.auth.auth_server import auth_server

pytestmark = pytest.mark.anyio

PROVIDERS = {one.id: one for one in builtin_providers()}
KEY = "sk-secret-0123456789"


def at(name: str, url: str) -> ProviderInfo:
    return replace(PROVIDERS[name], base_url=url)


@pytest.mark.parametrize(
    ("name", "path", "header", "value"),
    [
        ("anthropic", "/v1/models", "x-api-key", KEY),
        ("openai", "/models", "authorization", f"Bearer {KEY}"),
        ("google", "/models", "x-goog-api-key", KEY),
        ("openrouter", "/key", "authorization", f"Bearer {KEY}"),
    ],
)
async def test_a_key_goes_in_the_header_of_its_api(name: str, path: str, header: str, value: str):
    async with auth_server({path: [(200, {"data": []})]}) as server:
        check = await check_key(at(name, server.url), KEY)
        (asked,) = server.heard
    assert check.status == "accepted"
    assert asked.method == "GET"
    assert asked.headers[header] == value
    assert KEY not in asked.path


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "refused"),
        (401, {"error": "invalid"}, "refused"),
        (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, "refused"),
        (400, {"error": {"message": "unknown parameter"}}, "unknown"),
        (401, {"error": {"message": "Missing scopes: api.model.read"}}, "unknown"),
        (403, {"message": "forbidden"}, "unknown"),
        (404, {}, "unknown"),
        (500, {}, "unknown"),
    ],
)
async def test_only_an_answer_about_the_key_refuses_it(status: int, body: Any, expected: str):
    async with auth_server({"/models": [(status, body)]}) as server:
        check = await check_key(at("openai", server.url), KEY)
    assert check.status == expected
    assert check.detail.startswith(f"status {status}")
    assert KEY not in check.detail


async def test_the_version_in_an_address_is_not_repeated():
    async with auth_server({"/v1/models": [(200, {"data": []})]}) as server:
        check = await check_key(at("anthropic", f"{server.url}/v1/"), KEY)
    assert check.status == "accepted"


async def test_a_key_that_cannot_be_tested_is_not_refused():
    silent = await check_key(at("openai", "http://127.0.0.1:1"), KEY)
    assert (silent.status, silent.detail) == ("unknown", "127.0.0.1:1 cannot be reached")
    none_known = await check_key(PROVIDERS["huggingface"], KEY)
    assert (none_known.status, none_known.detail) == ("unknown", "")
