"""`agent/followUp`: say something when the run that is going on has nothing left to do."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.prompt_submission import submit_as_client
from tiller_server.lsp.wire.runs import FOLLOW_UP, FollowUpParams


@session_feature(FOLLOW_UP)
async def follow_up(
    client: ConnectedClient, open_session: OpenSession, params: FollowUpParams
) -> JsonObject:
    """Send the message to the session as a follow-up; return the receipt."""
    receipt = await submit_as_client(
        client, open_session, params.content, delivery="followUp", message_id=params.message_id
    )
    return receipt.answer()
