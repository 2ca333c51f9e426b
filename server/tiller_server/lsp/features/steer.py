"""`agent/steer`: say something inside the run that is going on."""

from typing import Any

from tiller_server.lsp.sessions.caller_environment import submit_as_client
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SteerParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Send the message into the active run; return the receipt."""
    asked = parse(SteerParams, params, method="agent/steer")
    open_session = await client.resolve_session(asked.session)
    receipt = await submit_as_client(
        client,
        open_session,
        asked.content,
        delivery="steer",
        message_id=asked.message_id,
        if_idle=asked.if_idle,
        expected_run=asked.expected_run,
    )
    return receipt.answer()
