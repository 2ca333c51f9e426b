"""`agent/prompt`: say something; acknowledged at once, or answered at the end with `wait`."""

from agent_core.kernel import JsonObject
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.operations.prompt_context import attach_editor_context
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.prompt_submission import SubmittedPrompt, submit_as_client, wait_for
from tiller_server.lsp.wire.runs import PROMPT, PromptParams


@session_feature(PROMPT)
async def prompt(
    client: ConnectedClient, open_session: OpenSession, params: PromptParams
) -> JsonObject:
    """Send the prompt to the session; return the receipt, or with `wait` the result of the run."""
    content, shown = attach_editor_context(client, open_session, params.content, params.context)
    receipt = await submit_as_client(
        client,
        open_session,
        content,
        delivery=params.delivery or "auto",
        message_id=params.message_id,
        if_idle=params.if_idle,
        expected_run=params.expected_run,
    )
    if shown is not None:
        client.editor.context_tracker.mark_sent(open_session.session.id, shown)
    if not params.wait or receipt.run is None or await _is_past(open_session, receipt):
        return receipt.answer()
    return await wait_for(
        client,
        open_session,
        receipt.run,
        work_done=params.work_done_token,
        partial=params.partial_result_token,
    )


async def _is_past(open_session: OpenSession, taken: SubmittedPrompt) -> bool:
    """Return whether the words were said in a run of an earlier process, of which only the session knows now."""
    session, run = open_session.session, taken.run
    if taken.receipt.accepted != "duplicate" or run is None or session.info.is_running(run):
        return False
    return await session.wait(run) is None
