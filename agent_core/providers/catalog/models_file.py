"""The user's models.json: read, checked, and laid over the table of known providers."""

import json as stdlib_json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, JsonValue as AnyJson, ValidationError
from pydantic.alias_generators import to_camel

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.unknown_keys import NOTES, did_you_mean, unknown_keys
from agent_core.kernel.values import SecretValue
from agent_core.providers.catalog.catalogue import ProviderInfo, builtin_providers
from agent_core.providers.messages.request_options import LEVEL_MAP
from agent_core.providers.model import ModelInfo, Prices, PriceTier, SamplingOptions, WireApi

CONTEXT_WINDOW = 128_000
MAX_TOKENS = 16_384
PROBLEMS_SHOWN = 5
OUTERMOST = ("providers",)

Tokens = Annotated[int, Field(gt=0)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
StringTable = dict[str, str]


class _Shape(BaseModel):
    """Names as the file writes them; keys that are not known are told by `read_models_file`."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", frozen=True, hide_input_in_errors=True
    )


class TierShape(_Shape):
    """Prices for long inputs."""

    input_tokens_above: Tokens
    input: Price = 0.0
    output: Price = 0.0
    cache_read: Price = 0.0
    cache_write: Price = 0.0


class CostShape(_Shape):
    """Dollars per million tokens."""

    input: Price = 0.0
    output: Price = 0.0
    cache_read: Price = 0.0
    cache_write: Price = 0.0
    tiers: tuple[TierShape, ...] = ()


class ModelChanges(_Shape):
    """Changes to a model; an absent field stays as it was."""

    name: str | None = None
    api: WireApi | None = None
    base_url: str | None = None
    reasoning: bool | None = None
    input: tuple[Literal["text", "image", "pdf"], ...] | None = None
    cost: CostShape | None = None
    context_window: Tokens | None = None
    max_tokens: Tokens | None = None
    headers: StringTable = Field(default_factory=dict)
    compat: dict[str, AnyJson] = Field(default_factory=dict)
    thinking_level_map: dict[str, str | None] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    stop: tuple[Annotated[str, Field(min_length=1)], ...] | None = None


class ModelShape(ModelChanges):
    """A model of the file."""

    id: Annotated[str, Field(min_length=1)]


class ProviderShape(_Shape):
    """A provider of the file."""

    name: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    api: WireApi | None = None
    headers: StringTable = Field(default_factory=dict)
    compat: dict[str, AnyJson] = Field(default_factory=dict)
    auth_header: bool = False
    models: tuple[ModelShape, ...] = ()
    model_overrides: dict[str, ModelChanges] = Field(default_factory=dict)


class WrittenAccess(SecretValue, frozen=True, kw_only=True):
    """Credentials in the file; the `repr` does not show them."""

    hidden: ClassVar = frozenset({"api_key", "headers", "model_headers"})

    api_key: str | None = None
    auth_header: bool = False
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    model_headers: Mapping[str, Mapping[str, str]] = msgspec.field(
        default_factory=dict[str, Mapping[str, str]]
    )


class ModelsFile(SecretValue, frozen=True, kw_only=True):
    """Content of a models.json, as far as it could be read."""

    hidden: ClassVar = frozenset({"providers", "text"})

    path: Path | None = None
    text: str | None = None
    """The text of the file; None: there was no text to read."""
    providers: Mapping[str, ProviderShape] = msgspec.field(default_factory=dict[str, ProviderShape])
    problems: tuple[ConfigError, ...] = ()


async def load_models_file(path: Path) -> ModelsFile:
    """Read the file; one that is not there says nothing."""
    return await run_in_thread(reload_models_file, path, ModelsFile())


def reload_models_file(path: Path, previous: ModelsFile) -> ModelsFile:
    """Read the file again; return `previous` itself when its text is the same. Blocking."""
    # The table of known providers, over which it is laid, is read here once, where that hinders nobody.
    _ = builtin_providers()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ModelsFile(path=path)
    except (OSError, UnicodeDecodeError) as error:
        problem = ConfigError(f"{path} cannot be read ({error}); it is ignored", path=path)
        return ModelsFile(path=path, problems=(problem,))
    same = text == previous.text and path == previous.path
    return previous if same else replace(read_models_file(text, path=path), text=text)


def read_models_file(text: str, *, path: Path) -> ModelsFile:
    """Read the text of a file; a provider that is wrong is left out and the others stay, an unknown key is told."""
    try:
        value: object = stdlib_json.loads(text)  # pyright: ignore[reportAny] - a parser gives Any
    except stdlib_json.JSONDecodeError as error:
        message = (
            f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg}); the file is ignored"
        )
        problem = ConfigError(message, path=path, line=error.lineno, column=error.colno)
        return ModelsFile(path=path, problems=(problem,))
    except RecursionError:
        problem = ConfigError(f"{path} is nested too deeply; the file is ignored", path=path)
        return ModelsFile(path=path, problems=(problem,))
    given = value.get("providers", {}) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON
    if not isinstance(given, dict):
        problem = _problem(text, path, ("providers",), 'must be an object: {"providers": {…}}')
        return ModelsFile(path=path, problems=(problem,))
    providers: dict[str, ProviderShape] = {}
    problems = [
        _unknown(text, path, (str(key),), OUTERMOST)  # pyright: ignore[reportUnknownArgumentType] - JSON
        for key in value  # pyright: ignore[reportUnknownVariableType, reportGeneralTypeIssues] - JSON
        if key not in OUTERMOST and not str(key).startswith(NOTES)  # pyright: ignore[reportUnknownArgumentType] - JSON
    ]
    for name, shape in given.items():  # pyright: ignore[reportUnknownVariableType] - JSON
        try:
            made = ProviderShape.model_validate(shape)
            providers[str(name)] = made  # pyright: ignore[reportUnknownArgumentType] - JSON
            problems.extend(
                _unknown(text, path, ("providers", str(name), *keys), allowed)  # pyright: ignore[reportUnknownArgumentType] - JSON
                for keys, allowed in unknown_keys(made, shape)  # pyright: ignore[reportUnknownArgumentType] - validated above
                if not str(keys[-1]).startswith(NOTES)
            )
        except ValidationError as error:
            problems.extend(
                _problem(text, path, ("providers", str(name), *each["loc"]), each["msg"])  # pyright: ignore[reportUnknownArgumentType] - JSON
                for each in error.errors(include_url=False, include_input=False)[:PROBLEMS_SHOWN]
            )
    return ModelsFile(path=path, providers=providers, problems=tuple(problems))


def apply_models_file(
    providers: Sequence[ProviderInfo], file: ModelsFile
) -> tuple[tuple[ProviderInfo, ...], tuple[ConfigError, ...]]:
    """Return the known providers as the file changes them, then those that it adds; and what was wrong."""
    table = {provider.id: provider for provider in providers}
    problems: list[ConfigError] = []
    for name, shape in file.providers.items():
        provider = table.get(name) or ProviderInfo(id=name, name=name, api=None, base_url="")
        try:
            table[name] = _changed(provider, shape, own=name in {each.id for each in providers})
        except ValueError as error:
            path = file.path or Path("models.json")
            problems.append(ConfigError(f"{path}: provider {name!r}: {error}", path=path))
    return tuple(table.values()), tuple(problems)


def written_access(shape: ProviderShape) -> WrittenAccess:
    """Return what a provider's entry says about the way in."""
    of_models = {model.id: model.headers for model in shape.models if model.headers}
    for name, changes in shape.model_overrides.items():
        if changes.headers:
            of_models[name] = {**of_models.get(name, {}), **changes.headers}
    return WrittenAccess(
        api_key=shape.api_key,
        auth_header=shape.auth_header,
        headers=shape.headers,
        model_headers=of_models,
    )


def _changed(provider: ProviderInfo, shape: ProviderShape, *, own: bool) -> ProviderInfo:
    base_url = shape.base_url or provider.base_url
    api = shape.api or provider.api
    models = {
        model.id: replace(
            model,
            base_url=shape.base_url or model.base_url,
            api=shape.api or model.api,
            compat=_laid_over(model.compat, shape.compat),
        )
        for model in provider.models
    }
    moved = replace(provider, base_url=base_url, api=api)
    for model in shape.models:
        models[model.id] = _merged(
            models.get(model.id) or _new(moved, model, shape, own=own),
            model,
        )
    for name, changes in shape.model_overrides.items():
        if name in models:
            models[name] = _merged(models[name], changes)
    return replace(
        provider,
        name=shape.name or provider.name,
        api=api,
        base_url=base_url,
        compat=_laid_over(provider.compat, shape.compat),
        keyless=provider.keyless or (not own and shape.api_key is None),
        models=tuple(models.values()),
    )


def _new(
    provider: ProviderInfo, model: ModelShape, shape: ProviderShape, *, own: bool
) -> ModelInfo:
    chosen = model.api or provider.api
    if chosen is None:
        message = f"model {model.id!r} has no api; say which it speaks"
        raise ValueError(message)
    address = model.base_url or provider.base_url
    # Where a known provider is may follow from its region or project.
    if not address and not own:
        message = f"model {model.id!r} has no baseUrl; say where it is"
        raise ValueError(message)
    return ModelInfo(
        provider=provider.id,
        id=model.id,
        api=chosen,
        name=model.name or model.id,
        context_window=CONTEXT_WINDOW,
        max_tokens=MAX_TOKENS,
        base_url=address,
        headers=provider.headers,
        compat=_laid_over(provider.compat, shape.compat),
    )


def _merged(model: ModelInfo, changes: ModelChanges) -> ModelInfo:
    compat = _laid_over(model.compat, changes.compat)
    if changes.thinking_level_map is not None:
        compat[LEVEL_MAP] = dict(changes.thinking_level_map)
    return replace(
        model,
        name=changes.name or model.name,
        api=changes.api or model.api,
        base_url=changes.base_url or model.base_url,
        reasoning=model.reasoning if changes.reasoning is None else changes.reasoning,
        images=model.images if changes.input is None else "image" in changes.input,
        pdf=model.pdf if changes.input is None else "pdf" in changes.input,
        prices=model.prices if changes.cost is None else _prices(changes.cost),
        context_window=changes.context_window or model.context_window,
        max_tokens=changes.max_tokens or model.max_tokens,
        compat=compat,
        sampling=_sampling(model.sampling, changes),
    )


def _sampling(sampling: SamplingOptions, changes: ModelChanges) -> SamplingOptions:
    return SamplingOptions(
        temperature=sampling.temperature if changes.temperature is None else changes.temperature,
        top_p=sampling.top_p if changes.top_p is None else changes.top_p,
        stop=sampling.stop if changes.stop is None else changes.stop,
    )


def _prices(cost: CostShape) -> Prices:
    return Prices(
        input=cost.input,
        output=cost.output,
        cache_read=cost.cache_read,
        cache_write=cost.cache_write,
        tiers=tuple(
            PriceTier(
                input_above=tier.input_tokens_above,
                prices=Prices(
                    input=tier.input,
                    output=tier.output,
                    cache_read=tier.cache_read,
                    cache_write=tier.cache_write,
                ),
            )
            for tier in cost.tiers
        ),
    )


def _laid_over(compat: JsonObject, changes: Mapping[str, AnyJson]) -> dict[str, JsonValue]:
    return {**compat, **changes}


def _unknown(
    text: str, path: Path, where: Sequence[str | int], allowed: Sequence[str]
) -> ConfigError:
    hint = did_you_mean(str(where[-1]), allowed)
    return _problem(text, path, where, f"is no key of models.json, so it has no effect{hint}")


def _problem(text: str, path: Path, where: Sequence[str | int], what: str) -> ConfigError:
    from agent_core.providers.json_positions import place_of  # noqa: PLC0415 - at first use

    line, column = place_of(text, where)
    dotted = ".".join(str(step) for step in where)
    message = f"{path}:{line}:{column}: {dotted}: {what}"
    return ConfigError(message, path=path, line=line, column=column)
