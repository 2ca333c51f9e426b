"""`agent/changes/resolve`: accept or reject hunks, files or change sets."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.resolutions import parse_resolutions
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.changes import CHANGES_RESOLVE, ChangesResolveParams


@feature(CHANGES_RESOLVE)
async def changes_resolve(client: ConnectedClient, params: ChangesResolveParams) -> JsonObject:
    """Apply the decisions; a rejection of changes by the active run is applied and answered when that run ends."""
    client.dialogs.check_may_decide()
    session = (await client.resolve_session(params.session)).session
    with translated_errors(session=session.id):
        outcomes = await session.changes.resolve(
            await parse_resolutions(params.items), note=params.note
        )
    await client.flush()
    results = [
        {"id": one.hunk or one.file or one.change_set, "status": outcome.status}
        for one, outcome in zip(params.items, outcomes, strict=True)
    ]
    return {"results": results, "seq": session.info.snapshot().seq}
