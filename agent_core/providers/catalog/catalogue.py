"""The providers and models that are known without any file of the user, read from the package's data."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import get_args

import msgspec
from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.providers.auth.oauth import OAuthFacts, read_oauth
from agent_core.providers.model import ModelInfo, Prices, PriceTier, WireApi

CATALOGUE = Path(__file__).parent / "data" / "catalogue.json"
"""Made before a release by `scripts/catalogue`; reading it costs a few milliseconds, genai-prices 200."""
APIS: tuple[WireApi, ...] = get_args(WireApi)
EnvironmentTarget = tuple[str, str]


class ProviderInfo(Value, frozen=True, kw_only=True):
    """Facts about a provider."""

    id: str
    name: str
    api: WireApi | None
    """None: each of its models says for itself."""
    base_url: str
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key, in order."""
    bearer_variables: tuple[str, ...] = ()
    """The same, for tokens that go into `Authorization`."""
    ambient_variables: tuple[str, ...] = ()
    """One of them set: the provider's own library finds credentials by itself, and no key is needed."""
    environment: tuple[EnvironmentTarget, ...] = ()
    """Where values of the environment go: `baseUrl` or `compat.NAME`, and a text with `${VARIABLE}` in it."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    compat: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """For models that are added to it."""
    keyless: bool = False
    """It lets everybody in."""
    any_model: bool = False
    """Ids that are not listed are taken too."""
    oauth: OAuthFacts | None = None
    """How to log in without a key."""
    models: tuple[ModelInfo, ...] = ()
    """The first is its default."""

    def unlisted(self, model: str, *, context_window: int, max_tokens: int) -> ModelInfo | None:
        """Return a model that nothing is known of but its name; None: the provider's API is not known either."""
        if self.api is None:
            return None
        return ModelInfo(
            provider=self.id,
            id=model,
            api=self.api,
            name=model,
            context_window=context_window,
            max_tokens=max_tokens,
            base_url=self.base_url,
            headers=self.headers,
            compat=self.compat,
        )


@lru_cache(maxsize=1)
def builtin_providers() -> tuple[ProviderInfo, ...]:
    """Return the table, in the order in which a default is looked for. Blocking the first time: it reads a file."""
    return read_catalogue(CATALOGUE.read_bytes())


def read_catalogue(raw: bytes) -> tuple[ProviderInfo, ...]:
    """Read the text of a catalogue.

    Raises:
        ValueError: It is none.
    """
    listed = json.as_object(json.decode(raw)).get("providers")
    return tuple(_provider(json.as_object(one)) for one in _list(listed))


def _provider(given: JsonObject) -> ProviderInfo:
    api = given.get("api")
    oauth = given.get("oauth")
    identity = _text(given, "id")
    bare = ProviderInfo(
        id=identity,
        name=_text(given, "name"),
        api=None if api is None else _api(api),
        base_url=_text(given, "baseUrl"),
        key_variables=_texts(given.get("keyVariables")),
        bearer_variables=_texts(given.get("bearerVariables")),
        ambient_variables=_texts(given.get("ambientVariables")),
        environment=tuple(_target(one) for one in _list(given.get("environment"))),
        headers=_string_map(given.get("headers")),
        compat=json.as_object(given.get("compat")),
        keyless=given.get("keyless") is True,
        any_model=given.get("anyModel") is True,
        oauth=None if oauth is None else read_oauth(json.as_object(oauth)),
    )
    models = tuple(_model(bare, json.as_object(one)) for one in _list(given.get("models")))
    return replace(bare, models=models)


def _model(provider: ProviderInfo, given: JsonObject) -> ModelInfo:
    identity = _text(given, "id")
    cost = given.get("cost")
    return ModelInfo(
        provider=provider.id,
        id=identity,
        api=_api(given.get("api") or provider.api),
        name=_text(given, "name") or identity,
        context_window=_count(given, "contextWindow"),
        max_tokens=_count(given, "maxTokens"),
        prices=None if cost is None else _prices(json.as_object(cost)),
        reasoning=given.get("reasoning") is True,
        images=given.get("images") is True,
        base_url=provider.base_url,
        headers=provider.headers,
        compat={**provider.compat, **json.as_object(given.get("compat"))},
    )


def _prices(cost: JsonObject) -> Prices:
    tiers = [json.as_object(tier) for tier in _list(cost.get("tiers"))]
    return Prices(
        input=_rate(cost, "input"),
        output=_rate(cost, "output"),
        cache_read=_rate(cost, "cacheRead"),
        cache_write=_rate(cost, "cacheWrite"),
        tiers=tuple(
            PriceTier(input_above=_count(tier, "inputTokensAbove"), prices=_prices(tier))
            for tier in tiers
        ),
    )


def _api(value: JsonValue) -> WireApi:
    for api in APIS:
        if api == value:
            return api
    message = f"{value!r} is no api"
    raise ValueError(message)


def _target(value: JsonValue) -> EnvironmentTarget:
    target, template = _texts(value)
    return target, template


def _text(given: JsonObject, key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(one for one in _list(value) if isinstance(one, str))


def _string_map(value: JsonValue) -> dict[str, str]:
    return {name: word for name, word in json.as_object(value).items() if isinstance(word, str)}


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _count(given: JsonObject, key: str) -> int:
    value = given.get(key)
    return value if isinstance(value, int) else 0


def _rate(given: JsonObject, key: str) -> float:
    value = given.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
