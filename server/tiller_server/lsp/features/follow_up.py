"""`agent/followUp`: say something when the run that is going on has nothing left to do."""

from typing import Any

from tiller_server.lsp.sessions.caller_environment import submit_as_client
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import FollowUpParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Send the message to the session as a follow-up; return the receipt."""
    asked = parse(FollowUpParams, params, method="agent/followUp")
    open_session = await client.resolve_session(asked.session)
    receipt = await submit_as_client(
        client, open_session, asked.content, delivery="followUp", message_id=asked.message_id
    )
    return receipt.answer()
