"""What each API is asked to keep of a request, by its `cache` and by what models.json says: seen on what is sent."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from agent_core.kernel import JsonObject, json
from agent_core.providers import CacheRetention, ModelInfo, ModelRequest, ToolDeclaration
from tests.providers.replay import HELLO, LAB, OPENERS, PROJECT, OpenDoor, ask
from tests.providers.requests.targets import Sink, SinkPool

READ = ToolDeclaration(name="read", description="Reads.", parameters={"type": "object"})
REQUEST = replace(HELLO, session="s1", tools=(READ,))
OPENAI_URL = "https://api.openai.com/v1"
SHORT: JsonObject = {"cache_control": {"type": "ephemeral"}}
LONG: JsonObject = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
POINT: JsonObject = {"cachePoint": {"type": "default"}}
KEYS = ("cache_control", "cachePoint", "prompt_cache_key", "prompt_cache_retention")
AFFINITY = ("session_id", "x-client-request-id", "x-session-id", "x-affinity")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a kind of model is sent."""

    facts: ModelInfo
    short: dict[str, list[Any]]
    long: dict[str, list[Any]] | None = None
    """None: as for `short`."""

    def expected(self, cache: CacheRetention) -> dict[str, list[Any]]:
        if cache == "none":
            return {}
        return self.long if cache == "long" and self.long is not None else self.short


def facts(api: Any, **more: Any) -> ModelInfo:
    return replace(LAB, **{"api": api, "base_url": "https://lab.test/v1", **more})


def marks(control: JsonObject, count: int) -> dict[str, list[Any]]:
    return {"cache_control": [control["cache_control"]] * count}


KEY = {"prompt_cache_key": ["s1"]}
KEY_LONG = {**KEY, "prompt_cache_retention": ["24h"]}
OPENAI_HEADERS = {"session_id": ["s1"], "x-client-request-id": ["s1"]}
CLAUDE_ID = "anthropic/claude-sonnet-4.5"
ROUTER_URL = "https://openrouter.ai/api/v1"
ROWS = {
    "anthropic": Row(facts=facts("anthropic-messages"), short=marks(SHORT, 3), long=marks(LONG, 3)),
    "anthropic without the long time": Row(
        facts=facts("anthropic-messages", compat={"supportsLongCacheRetention": False}),
        short=marks(SHORT, 3),
    ),
    "claude on vertex": Row(
        facts=facts("google-vertex", id="claude-sonnet-4@1", **PROJECT),
        short=marks(SHORT, 3),
        long=marks(LONG, 3),
    ),
    "claude behind openrouter": Row(
        facts=facts("openai-completions", id=CLAUDE_ID, base_url=ROUTER_URL),
        short=marks(SHORT, 2),
        long=marks(LONG, 2),
    ),
    "claude behind another gateway": Row(
        facts=facts("openai-completions", id=CLAUDE_ID, base_url="https://ai-gateway.vercel.sh/v1"),
        short=marks(SHORT, 2),
    ),
    "chat at openai": Row(
        facts=facts("openai-completions", id="gpt-5.1", base_url=OPENAI_URL),
        short=KEY,
        long=KEY_LONG,
    ),
    "chat at openai, a model that refuses it": Row(
        facts=facts("openai-completions", id="gpt-4o", base_url=OPENAI_URL), short=KEY
    ),
    "chat elsewhere": Row(facts=facts("openai-completions", id="gpt-5.1"), short={}),
    "chat elsewhere, told to": Row(
        facts=facts(
            "openai-completions",
            compat={"supportsPromptCacheKey": True, "supportsLongCacheRetention": True},
        ),
        short=KEY,
        long=KEY_LONG,
    ),
    "responses at openai": Row(
        facts=facts("openai-responses", id="gpt-5-codex", base_url=OPENAI_URL),
        short={**KEY, **OPENAI_HEADERS},
        long={**KEY_LONG, **OPENAI_HEADERS},
    ),
    "responses at openai, a model that refuses it": Row(
        facts=facts("openai-responses", id="gpt-5.6", base_url=OPENAI_URL),
        short={**KEY, **OPENAI_HEADERS},
    ),
    "responses behind openrouter": Row(
        facts=facts("openai-responses", id="gpt-5.1", base_url=ROUTER_URL),
        short={**KEY, "x-session-id": ["s1"]},
    ),
    "azure": Row(
        facts=facts(
            "azure-openai-responses",
            id="gpt-5.1",
            base_url="https://lab.openai.azure.com/openai/v1",
        ),
        short=KEY,
        long=KEY_LONG,
    ),
    "claude on bedrock": Row(
        facts=facts("bedrock-converse-stream", id="us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        short={"cachePoint": [POINT["cachePoint"]] * 3},
    ),
    "nova on bedrock": Row(
        facts=facts("bedrock-converse-stream", id="us.amazon.nova-2-lite-v1:0"),
        short={"cachePoint": [POINT["cachePoint"]] * 2},
    ),
    "mistral": Row(facts=facts("mistral-conversations"), short={"x-affinity": ["s1"]}),
    "gemini": Row(facts=facts("google-generative-ai", id="gemini-2.5-flash"), short={}),
    "gemini on vertex": Row(facts=facts("google-vertex", id="gemini-2.5-pro", **PROJECT), short={}),
    "ollama": Row(facts=facts("ollama-chat"), short={}),
}
CACHES: tuple[CacheRetention, ...] = ("none", "short", "long")


def found(value: Any) -> dict[str, list[Any]]:
    """Collect what asks for caching, wherever it stands in a body."""
    told: dict[str, list[Any]] = {}
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        if key in KEYS:
            told.setdefault(key, []).append(each)
        elif isinstance(each, dict | list):
            for deeper, values in found(each).items():
                told.setdefault(deeper, []).extend(values)
    return told


async def told_of(model: ModelInfo, request: ModelRequest) -> dict[str, list[Any]]:
    """Ask a model, and give all that its request says of caching: in the body and in the headers."""
    sink = Sink()
    access = OpenDoor(bearer=model.api == "google-vertex")
    outcome = await ask(OPENERS[model.api](model, access=access, pool=SinkPool(sink)), request)
    assert str(outcome.error) == "taken"
    (post,) = sink.posts
    headers = {key.lower(): value for key, value in post.headers.items()}
    affinity = {key: [headers[key]] for key in AFFINITY if key in headers}
    return found(json.decode(post.body)) | affinity


def test_every_api_that_is_asked_over_http_is_in_the_table() -> None:
    assert {row.facts.api for row in ROWS.values()} == set(OPENERS)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_a_request_asks_for_what_it_was_told(row: Row, cache: CacheRetention) -> None:
    assert await told_of(row.facts, replace(REQUEST, cache=cache)) == row.expected(cache)


@pytest.mark.parametrize("told", CACHES)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_what_models_json_says_goes_before_the_request(
    row: Row, told: CacheRetention
) -> None:
    model = replace(row.facts, compat={**row.facts.compat, "cacheRetention": told})
    other: CacheRetention = "short" if told == "long" else "long"
    expected = row.expected(told)
    if told == "long" and "refuses" in _name(row):
        # Who says so of this very model is taken at his word.
        expected = {**expected, "prompt_cache_retention": ["24h"]}
    assert await told_of(model, replace(REQUEST, cache=other)) == expected


@pytest.mark.parametrize("told", CACHES)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_a_request_that_is_never_repeated_is_not_cached_whatever_models_json_says(
    row: Row, told: CacheRetention
) -> None:
    model = replace(row.facts, compat={**row.facts.compat, "cacheRetention": told})
    assert await told_of(model, replace(REQUEST, cache="none")) == {}


async def test_a_word_that_models_json_may_not_say_changes_nothing() -> None:
    model = facts("anthropic-messages", compat={"cacheRetention": "forever"})
    assert await told_of(model, replace(REQUEST, cache="long")) == marks(LONG, 3)


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("gpt-5", True),
        ("gpt-5-2025-08-07", True),
        ("gpt-5.1-codex-mini", True),
        ("gpt-5.5", True),
        ("gpt-5-mini", False),
        ("gpt-5-nano", False),
        ("gpt-5.6", False),
        ("gpt-5.10", False),
        ("gpt-50", False),
        ("gpt-6.1-sol", False),
        ("gpt-4.1", False),
        ("o3", False),
    ],
)
async def test_openai_is_asked_for_a_day_only_where_it_does_not_refuse(
    model: str, kept: bool
) -> None:
    asked = facts("openai-responses", id=model, base_url=OPENAI_URL)
    told = await told_of(asked, replace(REQUEST, cache="long"))
    assert ("prompt_cache_retention" in told) is kept


def _name(row: Row) -> str:
    return next(name for name, each in ROWS.items() if each is row)
