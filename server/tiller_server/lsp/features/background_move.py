"""`agent/background/move`: move the running command of a tool call to the background."""

from agent_core.kernel import ItemId
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import (
    BACKGROUND_MOVE,
    BackgroundMoveParams,
    BackgroundMoveResult,
)


@session_feature(BACKGROUND_MOVE)
async def background_move(
    client: ConnectedClient, open_session: OpenSession, params: BackgroundMoveParams
) -> BackgroundMoveResult:
    """Ask for it; the tool call returns, and the run continues."""
    del client
    item = None if params.item is None else ItemId(params.item)
    return BackgroundMoveResult(moved=open_session.session.move_to_background(item))
