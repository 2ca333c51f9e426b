"""Makes of the providers that extensions registered what the registry of models takes."""

import json
from collections.abc import Iterable
from pathlib import Path

from agent_core.extensions.registry.registrations import Provider
from agent_core.kernel import JsonObject
from agent_core.providers.catalog.models_file import ProviderShape, read_models_file
from agent_core.providers.extension_models import ExtensionModels
from agent_core.resources.load_result import LoadProblem

OWN_ADDRESS = "extension:"
"""The address of models that an extension answers for itself."""
OWN_API = "openai-completions"
"""Named for them because every model has one; it is not spoken."""


def extension_models(
    providers: Iterable[Provider],
) -> tuple[ExtensionModels, tuple[LoadProblem, ...]]:
    """Return it, and what was wrong: a provider that is wrong is left out and the others stay."""
    shapes: dict[str, ProviderShape] = {}
    problems: list[LoadProblem] = []
    all_providers = tuple(providers)
    for one in all_providers:
        try:
            text = json.dumps({"providers": {one.name: _config(one)}})
        except (TypeError, ValueError) as error:
            problems.append(_problem(one, f"is no JSON: {error}"))
            continue
        read = read_models_file(text, path=Path(one.name))
        shapes.update(read.providers)
        problems.extend(_problem(one, str(error)) for error in read.problems)
    brought = ExtensionModels(
        shapes=shapes,
        oauth={one.name: one.oauth for one in all_providers if one.oauth is not None},
        adapters={one.name: one.adapter for one in all_providers if one.adapter is not None},
    )
    return brought, tuple(problems)


def _config(one: Provider) -> JsonObject:
    if one.adapter is None:
        return one.config
    return {"baseUrl": OWN_ADDRESS, "api": OWN_API, **one.config}


def _problem(one: Provider, what: str) -> LoadProblem:
    message = f"provider {one.name!r} of extension {one.extension!r}: {what}"
    return LoadProblem(message=message, level="error")
