"""`agent/background/stop`: stop a background command for the user."""

from agent_core.kernel.errors import ToolError, UsageError
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import (
    BACKGROUND_STOP,
    BackgroundStopParams,
    BackgroundStopResult,
)


@session_feature(BACKGROUND_STOP)
async def background_stop(
    client: ConnectedClient, open_session: OpenSession, params: BackgroundStopParams
) -> BackgroundStopResult:
    """End it with everything that it started; the answer follows its `background.ended`."""
    try:
        stopped = await open_session.session.stop_background(params.id)
    except ToolError as error:
        raise UsageError(str(error)) from error
    await client.flush()
    return BackgroundStopResult(exit_code=stopped.exit_code, signal=stopped.signal)
