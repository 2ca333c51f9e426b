"""`agent/prompt`: say something; acknowledged at once, or answered at the end with `wait`."""

from typing import Any

from server.lsp.front import Front
from server.lsp.saying import say, wait_for
from server.lsp.wire import PromptParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Take the words in."""
    asked = parse(PromptParams, params, method="agent/prompt")
    hosted = await front.hosted(asked.session)
    receipt = await say(
        hosted,
        asked.content,
        delivery=asked.delivery or "auto",
        message_id=asked.message_id,
        if_idle=asked.if_idle,
        expected_run=asked.expected_run,
    )
    if not asked.wait or receipt.run is None:
        return receipt.answer()
    return await wait_for(
        front,
        hosted,
        receipt.run,
        work_done=asked.work_done_token,
        partial=asked.partial_result_token,
    )
