"""`agent/changes/resolve`: accept or reject hunks, files or change sets."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.operations.resolutions import parse_resolutions
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ChangesResolveParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Apply the decisions; a rejection of changes by the active run is applied and answered when that run ends."""
    asked = parse(ChangesResolveParams, params, method="agent/changes/resolve")
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        outcomes = await session.changes.resolve(
            await parse_resolutions(asked.items), note=asked.note
        )
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    results = [
        {"id": one.hunk or one.file or one.change_set, "status": outcome.status}
        for one, outcome in zip(asked.items, outcomes, strict=True)
    ]
    return {"results": results, "seq": session.info.snapshot().seq}
