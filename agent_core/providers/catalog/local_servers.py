"""Looks for model servers on this machine, at their usual ports; only when somebody asks what there is."""

from collections.abc import Sequence
from http import HTTPStatus

import anyio
from msgspec.structs import replace

from agent_core.kernel import JsonValue, json
from agent_core.kernel.values import Value
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.http.json_request import JsonRequest, JsonRequestFailed, request_json
from agent_core.providers.model import ModelInfo

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
