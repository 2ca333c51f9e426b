"""`agent/changes/list`: the changes of a session, of a run, or since a checkpoint."""

from typing import Any

from agent_core.kernel import RunId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.change_sets import change_set
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ChangesListParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the change set, as the files are now."""
    asked = parse(ChangesListParams, params, method="agent/changes/list")
    open_session = await client.resolve_session(asked.session)
    changes = open_session.session.changes
    which = RunId(asked.run) if asked.run is not None else None
    patch = None
    try:
        found = await changes.list(run=which, since=asked.since)
        if asked.format == "gitPatch":
            patch = await changes.patch(run=which, since=asked.since)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    return await change_set(
        found,
        encoding=client.editor.mirror.encoding,
        redactor=client.host.redactor,
        patch=patch,
    )
