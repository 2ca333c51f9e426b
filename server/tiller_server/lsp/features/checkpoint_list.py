"""`agent/checkpoint/list`: the moments to which files and conversation can be taken back."""

from agent_core.events.codec import checkpoint
from agent_core.kernel import JsonObject, JsonValue
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import CHECKPOINT_LIST, CheckpointListParams


@session_feature(CHECKPOINT_LIST)
async def checkpoint_list(
    _client: ConnectedClient, open_session: OpenSession, _params: CheckpointListParams
) -> JsonObject:
    """List them, oldest first."""
    checkpoints = open_session.session.checkpoints
    listed: dict[str, JsonValue] = {"checkpoints": [checkpoint(one) for one in checkpoints.all]}
    latest = checkpoints.latest_run
    return listed if latest is None else listed | {"latestRun": latest.checkpoint}
