"""`agent/followUp`: say something when the run that is going on has nothing left to do."""

from typing import Any

from tiller_server.lsp.sessions.caller_environment import say_as
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import FollowUpParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Send the message to the session as a follow-up; return the receipt."""
    asked = parse(FollowUpParams, params, method="agent/followUp")
    hosted = await front.hosted(asked.session)
    receipt = await say_as(
        front, hosted, asked.content, delivery="followUp", message_id=asked.message_id
    )
    return receipt.answer()
