"""Where each thing that is known of a model comes from: the catalogue, the user's models.json, the environment. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal

from agent_core.providers.auth.credentials import in_environment
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.model import ModelInfo

ModelFieldSource = Literal["catalogue", "environment", "models.json", "default"]
NAMES = ("provider", "id")


def value_sources(
    model: ModelInfo, providers: Sequence[ProviderInfo], environment: Mapping[str, str]
) -> Mapping[str, ModelFieldSource]:
    """Return the source of every field of a model.

    Args:
        model: The facts in use.
        providers: The providers before the user's file and the environment changed them.
        environment: The environment that the addresses and regions come from.
    """
    provider = next((one for one in providers if one.id == model.provider), None)
    plain = _model_of(provider, model.id)
    moved = None if provider is None else _model_of(in_environment(provider, environment), model.id)
    sources: dict[str, ModelFieldSource] = {}
    for name in (name for name in model.__struct_fields__ if name not in NAMES):
        value: object = getattr(model, name)  # pyright: ignore[reportAny] - any field
        if plain is not None and value == getattr(plain, name):
            sources[name] = "catalogue"
        elif moved is not None and value == getattr(moved, name):
            sources[name] = "environment"
        elif provider is not None and value == getattr(_unlisted(provider, model), name, None):
            sources[name] = "default" if plain is None else "models.json"
        else:
            sources[name] = "models.json"
    return sources


def _model_of(provider: ProviderInfo | None, model: str) -> ModelInfo | None:
    listed = () if provider is None else provider.models
    return next((one for one in listed if one.id == model), None)


def _unlisted(provider: ProviderInfo, model: ModelInfo) -> ModelInfo | None:
    return provider.unlisted(
        model.id, context_window=model.context_window, max_tokens=model.max_tokens
    )
