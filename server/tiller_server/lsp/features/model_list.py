"""`agent/model/list`: the models there are to choose from."""

from agent_core.kernel import JsonObject, JsonValue
from agent_core.providers import ModelInfo
from agent_core.providers.messages.request_options import supported
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import MODEL_LIST, ModelListParams


@session_feature(MODEL_LIST)
async def model_list(
    _client: ConnectedClient, open_session: OpenSession, params: ModelListParams
) -> JsonObject:
    """Return those that can be asked, those of the scope, or all."""
    models = open_session.session.models
    # The user may have signed in since, in a terminal or another window, or started a server of their own.
    await models.refresh(servers="keep" if params.scope == "scoped" else "find")
    usable = {one.ref for one in models.available()}
    match params.scope:
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


def _entry(model: ModelInfo, *, usable: bool) -> JsonObject:
    out: dict[str, JsonValue] = {
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
