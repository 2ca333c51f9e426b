"""`agent/steer`: say something inside the run that is going on."""

from typing import Any

from tiller_server.lsp.sessions.caller_environment import say_as
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import SteerParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Send the message into the active run; return the receipt."""
    asked = parse(SteerParams, params, method="agent/steer")
    hosted = await front.hosted(asked.session)
    receipt = await say_as(
        front,
        hosted,
        asked.content,
        delivery="steer",
        message_id=asked.message_id,
        if_idle=asked.if_idle,
        expected_run=asked.expected_run,
    )
    return receipt.answer()
