"""`agent/run/retry`: go on with a run that was interrupted or failed, without repeating the user's words."""

from agent_core.kernel import JsonObject, RunId
from agent_core.kernel.errors import RunMismatch
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.prompt_submission import SubmittedPrompt, running
from tiller_server.lsp.wire.runs import RUN_RETRY, RunRetryParams


@session_feature(RUN_RETRY)
async def run_retry(
    client: ConnectedClient, open_session: OpenSession, params: RunRetryParams
) -> JsonObject:
    """Begin; acknowledged at once, like a prompt."""
    session = open_session.session
    try:
        with open_session.environment.use_for_submission(client.origin.env):
            receipt = await session.retry(RunId(params.run))
    except RunMismatch as error:
        raise to_rpc_error(
            error, session=session.id, expected=params.run, actual=running(session)
        ) from error
    return SubmittedPrompt(receipt, None).answer()
