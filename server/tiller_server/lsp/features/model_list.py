"""`agent/model/list`: the models there are to choose from."""

from typing import Any

from agent_core.providers import ModelInfo
from agent_core.providers.messages.thinking_level import supported
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ModelListParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return those that can be asked, those of the scope, or all."""
    asked = parse(ModelListParams, params, method="agent/model/list")
    models = (await client.resolve_session(asked.session)).session.models
    # The user may have signed in since, in a terminal or another window, or started a server of their own.
    await models.refresh(servers="keep" if asked.scope == "scoped" else "find")
    usable = {one.ref for one in models.available()}
    match asked.scope:
        case "all":
            listed = models.all_models()
        case "scoped":
            listed = tuple(named.model for named in models.scoped())
        case _:
            listed = models.available()
    current = models.current
    return {
        "models": [_entry(one, usable=one.ref in usable) for one in listed],
        "current": current.ref if current else None,
    }


def _entry(model: ModelInfo, *, usable: bool) -> dict[str, Any]:
    out: dict[str, Any] = {
        "model": model.ref,
        "name": model.name,
        "provider": model.provider,
        "contextWindow": model.context_window,
        "maxTokens": model.max_tokens,
        "thinking": list(supported(model)),
        "images": model.images,
        "auth": "ok" if usable else "missing",
    }
    if model.prices is not None:
        out["prices"] = {
            "in": model.prices.input,
            "out": model.prices.output,
            "cacheRead": model.prices.cache_read,
            "cacheWrite": model.prices.cache_write,
        }
    return out
