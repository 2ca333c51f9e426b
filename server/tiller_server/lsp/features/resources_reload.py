"""`agent/resources/reload`: read settings, context files, skills, templates and extensions again."""

from pathlib import Path

from agent_core.kernel import JsonObject, JsonValue
from agent_core.resources.load_result import LoadProblem, Resource
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import RESOURCES_RELOAD, ResourcesReloadParams


@session_feature(RESOURCES_RELOAD)
async def resources_reload(
    client: ConnectedClient, open_session: OpenSession, _params: ResourcesReloadParams
) -> JsonObject:
    """Read everything; return what was read and what could not be."""
    loaded = await open_session.session.resources.reload()
    await client.flush()
    return {
        "loaded": [_resource(one) for one in loaded.resources],
        "problems": [_problem(one) for one in loaded.problems],
    }


def _resource(one: Resource) -> JsonObject:
    return {"kind": one.kind, "name": one.name, **_uri(one.path)}


def _problem(one: LoadProblem) -> JsonObject:
    out: dict[str, JsonValue] = {"message": one.message, "level": one.level, **_uri(one.path)}
    if one.line is not None:
        out["line"] = one.line
    return out


def _uri(path: Path | None) -> JsonObject:
    return {} if path is None or not path.is_absolute() else {"uri": path.as_uri()}
