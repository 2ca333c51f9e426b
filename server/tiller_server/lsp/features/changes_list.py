"""`agent/changes/list`: the changes of a session, of a run, or since a checkpoint."""

from agent_core.kernel import JsonObject, RunId
from tiller_server.lsp.encode.change_sets import change_set
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import CHANGES_LIST, ChangesListParams


@session_feature(CHANGES_LIST)
async def changes_list(
    client: ConnectedClient, open_session: OpenSession, params: ChangesListParams
) -> JsonObject:
    """Return the change set, as the files are now."""
    changes = open_session.session.changes
    which = RunId(params.run) if params.run is not None else None
    found = await changes.list(run=which, since=params.since)
    patch = None
    if params.format == "gitPatch":
        patch = await changes.patch(run=which, since=params.since)
    return await change_set(
        found,
        encoding=client.editor.mirror.encoding,
        redactor=client.host.redactor,
        patch=patch,
    )
