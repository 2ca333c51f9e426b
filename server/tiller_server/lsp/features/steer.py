"""`agent/steer`: say something inside the run that is going on."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.prompt_submission import submit_as_client
from tiller_server.lsp.wire.runs import STEER, SteerParams


@session_feature(STEER)
async def steer(
    client: ConnectedClient, open_session: OpenSession, params: SteerParams
) -> JsonObject:
    """Send the message into the active run; return the receipt."""
    receipt = await submit_as_client(
        client,
        open_session,
        params.content,
        delivery="steer",
        message_id=params.message_id,
        if_idle=params.if_idle,
        expected_run=params.expected_run,
    )
    return receipt.answer()
