"""`agent/prompt`: say something; acknowledged at once, or answered at the end with `wait`."""

from typing import Any

from tiller_server.lsp.operations.prompt_context import beside
from tiller_server.lsp.sessions.caller_environment import say_as
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.prompt_submission import Taken, wait_for
from tiller_server.lsp.wire import PromptParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Send the prompt to the session; return the receipt, or with `wait` the result of the run."""
    asked = parse(PromptParams, params, method="agent/prompt")
    hosted = await front.hosted(asked.session)
    content, shown = beside(front, hosted, asked.content, asked.context)
    receipt = await say_as(
        front,
        hosted,
        content,
        delivery=asked.delivery or "auto",
        message_id=asked.message_id,
        if_idle=asked.if_idle,
        expected_run=asked.expected_run,
    )
    if shown is not None:
        front.editor.attention.told(hosted.session.id, shown)
    if not asked.wait or receipt.run is None or await _is_past(hosted, receipt):
        return receipt.answer()
    return await wait_for(
        front,
        hosted,
        receipt.run,
        work_done=asked.work_done_token,
        partial=asked.partial_result_token,
    )


async def _is_past(hosted: Any, taken: Taken) -> bool:
    """Return whether the words were said in a run of an earlier process, of which only the session knows now."""
    session, run = hosted.session, taken.run
    if taken.receipt.accepted != "duplicate" or run is None or session.info.is_running(run):
        return False
    return await session.wait(run) is None
