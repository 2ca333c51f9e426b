"""`agent/extension/list`: the keys, flags and message views of extensions."""

from agent_core.kernel import JsonObject, JsonValue
from agent_core.resources.offers import OfferedFlag, OfferedKey
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.extensions import EXTENSION_LIST, ExtensionListParams


@session_feature(EXTENSION_LIST)
async def extension_list(
    _client: ConnectedClient, open_session: OpenSession, _params: ExtensionListParams
) -> JsonObject:
    """Return what they offer now; of two of one name what counts."""
    offered = open_session.session.resources.offered()
    return {
        "keys": [_key(one) for one in offered.keys],
        "flags": [_flag(one) for one in offered.flags],
        "renderers": [
            {"customType": one.custom_type, "extension": one.extension} for one in offered.renderers
        ],
    }


def _key(one: OfferedKey) -> JsonObject:
    return {"key": one.key, "extension": one.extension, **_described(one.description)}


def _flag(one: OfferedFlag) -> JsonObject:
    out: dict[str, JsonValue] = {"name": one.name, "extension": one.extension, "kind": one.kind}
    if one.value is not None:
        out["value"] = one.value
    return {**out, **_described(one.description)}


def _described(description: str) -> JsonObject:
    return {"description": description} if description else {}
