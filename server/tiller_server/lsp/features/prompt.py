"""`agent/prompt`: say something; acknowledged at once, or answered at the end with `wait`."""

from typing import Any

from tiller_server.lsp.operations.prompt_context import attach_editor_context
from tiller_server.lsp.sessions.caller_environment import submit_as_client
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.prompt_submission import SubmittedPrompt, wait_for
from tiller_server.lsp.wire import PromptParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Send the prompt to the session; return the receipt, or with `wait` the result of the run."""
    asked = parse(PromptParams, params, method="agent/prompt")
    open_session = await client.resolve_session(asked.session)
    content, shown = attach_editor_context(client, open_session, asked.content, asked.context)
    receipt = await submit_as_client(
        client,
        open_session,
        content,
        delivery=asked.delivery or "auto",
        message_id=asked.message_id,
        if_idle=asked.if_idle,
        expected_run=asked.expected_run,
    )
    if shown is not None:
        client.editor.context_tracker.mark_sent(open_session.session.id, shown)
    if not asked.wait or receipt.run is None or await _is_past(open_session, receipt):
        return receipt.answer()
    return await wait_for(
        client,
        open_session,
        receipt.run,
        work_done=asked.work_done_token,
        partial=asked.partial_result_token,
    )


async def _is_past(open_session: Any, taken: SubmittedPrompt) -> bool:
    """Return whether the words were said in a run of an earlier process, of which only the session knows now."""
    session, run = open_session.session, taken.run
    if taken.receipt.accepted != "duplicate" or run is None or session.info.is_running(run):
        return False
    return await session.wait(run) is None
