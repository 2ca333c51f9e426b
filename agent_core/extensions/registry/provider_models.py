"""Makes of the providers that extensions registered what the registry of models takes."""

import json
from collections.abc import Iterable
from pathlib import Path

from agent_core.extensions.registry.registrations import Provider
from agent_core.kernel import JsonObject
from agent_core.providers.catalog.models_file import ProviderShape, read_models_file
from agent_core.providers.extension_models import Brought
from agent_core.resources.load_result import Problem

OWN_ADDRESS = "extension:"
"""The address of models that an extension answers for itself."""
OWN_API = "openai-completions"
"""Named for them because every model has one; it is not spoken."""


def brought_by(providers: Iterable[Provider]) -> tuple[Brought, tuple[Problem, ...]]:
    """Return it, and what was wrong: a provider that is wrong is left out and the others stay."""
    shapes: dict[str, ProviderShape] = {}
    problems: list[Problem] = []
    known = tuple(providers)
    for one in known:
        try:
            text = json.dumps({"providers": {one.name: _config(one)}})
        except (TypeError, ValueError) as error:
            problems.append(_problem(one, f"is no JSON: {error}"))
            continue
        read = read_models_file(text, path=Path(one.name))
        shapes.update(read.providers)
        problems.extend(_problem(one, str(error)) for error in read.problems)
    brought = Brought(
        shapes=shapes,
        oauth={one.name: one.oauth for one in known if one.oauth is not None},
        adapters={one.name: one.adapter for one in known if one.adapter is not None},
    )
    return brought, tuple(problems)


def _config(one: Provider) -> JsonObject:
    if one.adapter is None:
        return one.config
    return {"baseUrl": OWN_ADDRESS, "api": OWN_API, **one.config}


def _problem(one: Provider, what: str) -> Problem:
    message = f"provider {one.name!r} of extension {one.extension!r}: {what}"
    return Problem(message=message, level="error")
