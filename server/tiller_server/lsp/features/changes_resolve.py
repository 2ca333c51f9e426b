"""`agent/changes/resolve`: accept or reject hunks, files or change sets."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.operations.resolutions import wishes_of
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import ChangesResolveParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Apply the decisions; a rejection of changes by the active run is applied and answered when that run ends."""
    asked = parse(ChangesResolveParams, params, method="agent/changes/resolve")
    front.dialogs.check_may_decide()
    hosted = await front.hosted(asked.session)
    session = hosted.session
    try:
        outcomes = await session.changes.resolve(await wishes_of(asked.items), note=asked.note)
    except TillerError as error:
        raise rpc_error(error, session=session.id) from error
    await front.flush()
    results = [
        {"id": one.hunk or one.file or one.change_set, "status": outcome.status}
        for one, outcome in zip(asked.items, outcomes, strict=True)
    ]
    return {"results": results, "seq": session.info.snapshot().seq}
