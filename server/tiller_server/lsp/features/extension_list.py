"""`agent/extension/list`: the keys, flags and message views of extensions."""

from typing import Any

from agent_core.resources.client_offers import OfferedFlag, OfferedKey
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ExtensionListParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return what they offer now; of two of one name what counts."""
    asked = parse(ExtensionListParams, params, method="agent/extension/list")
    open_session = await client.resolve_session(asked.session)
    offered = open_session.session.resources.offered()
    return {
        "keys": [_key(one) for one in offered.keys],
        "flags": [_flag(one) for one in offered.flags],
        "renderers": [
            {"customType": one.custom_type, "extension": one.extension} for one in offered.renderers
        ],
    }


def _key(one: OfferedKey) -> dict[str, Any]:
    return {"key": one.key, "extension": one.extension, **_described(one.description)}


def _flag(one: OfferedFlag) -> dict[str, Any]:
    out: dict[str, Any] = {"name": one.name, "extension": one.extension, "kind": one.kind}
    if one.value is not None:
        out["value"] = one.value
    return {**out, **_described(one.description)}


def _described(description: str) -> dict[str, Any]:
    return {"description": description} if description else {}
