"""`agent/resources/reload`: read settings, context files, skills, templates and extensions again."""

from pathlib import Path
from typing import Any

from agent_core.resources.load_result import LoadProblem, Resource
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ResourcesReloadParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Read everything, and give what was read and what could not be."""
    asked = parse(ResourcesReloadParams, params, method="agent/resources/reload")
    open_session = await client.resolve_session(asked.session)
    loaded = await open_session.session.resources.reload()
    await client.flush()
    return {
        "loaded": [_resource(one) for one in loaded.resources],
        "problems": [_problem(one) for one in loaded.problems],
    }


def _resource(one: Resource) -> dict[str, Any]:
    return {"kind": one.kind, "name": one.name, **_uri(one.path)}


def _problem(one: LoadProblem) -> dict[str, Any]:
    out: dict[str, Any] = {"message": one.message, "level": one.level, **_uri(one.path)}
    if one.line is not None:
        out["line"] = one.line
    return out


def _uri(path: Path | None) -> dict[str, Any]:
    return {} if path is None or not path.is_absolute() else {"uri": path.as_uri()}
