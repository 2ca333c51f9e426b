"""The catalogue of providers and models, references to models, and what is known of each provider now."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Literal, get_args

import anyio
import msgspec
from msgspec.structs import replace

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.providers.auth.oauth import OAuthFacts, read_oauth
from agent_core.providers.http.client import JsonRequest, JsonRequestFailed, request_json
from agent_core.providers.messages.request_options import LEVELS
from agent_core.providers.model import ModelInfo, Prices, PriceTier, WireApi

WILD = re.compile(r"[*?\[]")
DATED = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest)$")


class Named(Value, frozen=True, kw_only=True):
    """A model, and how hard it shall think if its name said so."""

    model: ModelInfo
    thinking: ThinkingLevel | None = None

    @property
    def ref(self) -> str:
        """The full name, with the level."""
        return f"{self.model.ref}:{self.thinking}" if self.thinking else self.model.ref


class ModelScope(Value, frozen=True, kw_only=True):
    """The models that a user cycles through."""

    models: tuple[Named, ...]
    problems: tuple[str, ...] = ()
    """Patterns that stand for nothing that can be used, a sentence each."""


def without_level(ref: str) -> tuple[str, ThinkingLevel | None]:
    """Split the level off the end of a name; ids may contain colons, so look up the whole name first."""
    name, colon, word = ref.rpartition(":")
    for level in LEVELS if colon and name else ():
        if level == word:
            return name, level
    return ref, None


def without_date(model: str) -> str | None:
    """Return the id that a dated one is a snapshot of; None when it has no date."""
    bare = DATED.sub("", model)
    return None if bare == model else bare


def exactly(ref: str, models: Sequence[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Find by `provider/id`, or by the id alone; then without regard to case."""
    provider, _, id_ = ref.partition("/")
    found = tuple(model for model in models if model.id == id_ and model.provider == provider)
    if found:
        return found
    for name in (_same, _lower):
        wanted = name(ref)
        for part in (_ref, _id):
            found = tuple(model for model in models if name(part(model)) == wanted)
            if found:
                return found
    return ()


def matching(pattern: str, models: Sequence[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Find by a pattern (`*`, `?`, `[…]`), by a part of the id, such as `sonnet`, or by the name of a provider.

    A part with a digit names a version, and another version is never an answer to that: `opus-4` finds `opus-4` and
    `opus-4-20250514`, but neither `opus-4-5` nor `opus-45`.
    """
    wanted = pattern.lower().strip()
    if not wanted:
        return ()
    if WILD.search(wanted):
        return tuple(
            model
            for model in models
            if fnmatchcase(model.ref.lower(), wanted) or fnmatchcase(model.id.lower(), wanted)
        )
    provider, slash, part = wanted.partition("/")
    if slash:
        return tuple(
            model
            for model in models
            if model.provider.lower() == provider and _has_part(model.id.lower(), part)
        )
    by_id = tuple(model for model in models if _has_part(model.id.lower(), wanted))
    return by_id + tuple(model for model in models if model.provider.lower() == wanted)


def _has_part(model: str, part: str) -> bool:
    if not any(letter.isdecimal() for letter in part):
        return bool(part) and part in model
    part = part.strip("-.:@")
    if not any(letter.isalpha() for letter in part):
        return False  # a number alone says nothing
    before = r"(?<![0-9a-z])(?<!\d[.-])" if part[0].isdecimal() else ""
    # After a version neither more of its number nor a minor version; a date is none, and `-8b` is a size.
    after = r"(?![0-9a-z])(?![.-]\d{1,2}(?![0-9a-z]))" if part[-1].isdecimal() else ""
    return re.search(f"{before}{re.escape(part)}{after}", model) is not None


def next_of(
    choices: Sequence[Named], *, current: str | None, direction: Literal[1, -1]
) -> Named | None:
    """Return the choice after or before the current model, cyclically; None: there is no other.

    Args:
        choices: The models to cycle through, in order.
        current: `provider/id` of the current model. When it is none of them, the first (or last) follows.
        direction: Forwards or backwards.
    """
    refs = [choice.model.ref for choice in choices]
    if not choices or refs == [current]:
        return None
    if current not in refs:
        return choices[0 if direction > 0 else -1]
    return choices[(refs.index(current) + direction) % len(choices)]


def _ref(model: ModelInfo) -> str:
    return model.ref


def _id(model: ModelInfo) -> str:
    return model.id


def _same(text: str) -> str:
    return text


def _lower(text: str) -> str:
    return text.lower()


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
    key_check: str = ""
    """Path below the base URL that answers only to a valid key; empty: none is known."""
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
        key_check=_text(given, "keyCheck"),
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
        pdf=given.get("pdf") is True,
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


LOOK_S = 0.7
MODELS_SHOWN = 200
MAX_TOKENS = 4_096
"""For a server whose window is unknown: more is refused by some."""
OLLAMA_WINDOW = 32_768
"""Asked of Ollama, which otherwise loads a model with 4,096 tokens: full after the first tool calls. 32,000 is the least that it
recommends for agents (docs.ollama.com/context-length); a model trained for less is loaded with what it was trained for."""


class FoundServer(Value, frozen=True, kw_only=True):
    """A server that answered, and what it has."""

    provider: str
    models: tuple[ModelInfo, ...]


async def local_servers(
    providers: Sequence[ProviderInfo], *, limit_s: float = LOOK_S
) -> tuple[FoundServer, ...]:
    """Request the models of all providers that need no key, concurrently; one that does not answer is left out."""
    asked = [one for one in providers if one.keyless and one.base_url]
    found: dict[str, FoundServer] = {}

    async def look(provider: ProviderInfo) -> None:
        question = JsonRequest(url=_list_of(provider))
        try:
            reply = await request_json(question, limit_s=limit_s)
        except JsonRequestFailed:
            return
        listed = reply.body.get("data")
        if reply.status == HTTPStatus.OK and isinstance(listed, list):
            models = [_listed(provider, one) for one in listed[:MODELS_SHOWN]]
            found[provider.id] = FoundServer(
                provider=provider.id, models=tuple(one for one in models if one is not None)
            )

    async with anyio.create_task_group() as group:
        for provider in asked:
            group.start_soon(look, provider)
    return tuple(found[one.id] for one in asked if one.id in found)


def _list_of(provider: ProviderInfo) -> str:
    base_url = provider.base_url.rstrip("/")
    if provider.api == "ollama-chat":
        # It lists its models for clients of OpenAI's wire too, in the same words as the others.
        base_url = f"{base_url.removesuffix('/v1').removesuffix('/api')}/v1"
    return f"{base_url}/models"


def local_model(provider: ProviderInfo, identity: str) -> ModelInfo | None:
    """Return a model of a local server, of which only the name is known; the window is 0 where the server decides on it."""
    window = OLLAMA_WINDOW if provider.api == "ollama-chat" else 0
    return provider.unlisted(identity, context_window=window, max_tokens=MAX_TOKENS)


def _listed(provider: ProviderInfo, given: JsonValue) -> ModelInfo | None:
    entry = json.as_object(given)
    identity = entry.get("id")
    # Models that only embed text stand in the same list; LM Studio brings one, and nothing else tells them apart.
    if not isinstance(identity, str) or not identity or "embed" in identity.lower():
        return None
    model = local_model(provider, identity)
    # vLLM tells the window that it serves with; others tell none, or the one that the model was trained for.
    window = entry.get("max_model_len")
    if model is None or not isinstance(window, int) or window <= 0:
        return model
    return replace(model, context_window=window)
