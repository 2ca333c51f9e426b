"""`agent/run/retry`: go on with a run that was interrupted or failed, without repeating the user's words."""

from typing import Any

from agent_core.kernel import RunId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.prompt_submission import SubmittedPrompt, running
from tiller_server.lsp.wire import RunRetryParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Begin; acknowledged at once, like a prompt."""
    asked = parse(RunRetryParams, params, method="agent/run/retry")
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        with open_session.environment.use_for_submission(client.origin.env):
            receipt = await session.retry(RunId(asked.run))
    except TillerError as error:
        raise to_rpc_error(
            error, session=session.id, expected=asked.run, actual=running(session)
        ) from error
    return SubmittedPrompt(receipt, None).answer()
