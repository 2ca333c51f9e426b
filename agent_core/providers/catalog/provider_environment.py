"""Provider settings from the environment besides keys: address, region or project. Pure."""

from collections.abc import Mapping

from msgspec.structs import replace

from agent_core.kernel import JsonValue
from agent_core.providers.auth.setting_values import filled
from agent_core.providers.catalog.catalogue import ProviderInfo

ADDRESS = "baseUrl"
COMPAT = "compat."


def in_environment(provider: ProviderInfo, environment: Mapping[str, str]) -> ProviderInfo:
    """Return a provider, and each of its models, as the environment says; of two values for one thing the first counts."""
    found: dict[str, str] = {}
    for target, template in provider.environment:
        value = filled(template, environment)
        if value and target not in found:
            found[target] = value
    if not found:
        return provider
    base_url = found.pop(ADDRESS, "") or provider.base_url
    more: dict[str, JsonValue] = {
        target.removeprefix(COMPAT): value for target, value in found.items()
    }
    return replace(
        provider,
        base_url=base_url,
        compat={**provider.compat, **more},
        models=tuple(
            replace(model, base_url=base_url, compat={**model.compat, **more})
            for model in provider.models
        ),
    )
