"""`agent/run/retry`: go on with a run that was interrupted or failed, without repeating the user's words."""

from typing import Any

from agent_core.kernel import RunId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.prompt_submission import Taken, running
from tiller_server.lsp.wire import RunRetryParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Begin; acknowledged at once, like a prompt."""
    asked = parse(RunRetryParams, params, method="agent/run/retry")
    hosted = await front.hosted(asked.session)
    session = hosted.session
    try:
        with hosted.environment.speaks(front.origin.env):
            receipt = await session.retry(RunId(asked.run))
    except TillerError as error:
        raise rpc_error(
            error, session=session.id, expected=asked.run, actual=running(session)
        ) from error
    return Taken(receipt, None).answer()
