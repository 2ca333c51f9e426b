"""`agent/command/complete`: how the arguments of a command may go on."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import (
    COMMAND_COMPLETE,
    CommandCompleteParams,
    CommandCompleteResult,
    CommandCompletion,
)


@session_feature(COMMAND_COMPLETE)
async def command_complete(
    _client: ConnectedClient, open_session: OpenSession, params: CommandCompleteParams
) -> CommandCompleteResult:
    """Return the completions of the command itself; none when it has none."""
    found = await open_session.session.resources.complete(params.name, params.prefix)
    return CommandCompleteResult(
        completions=[
            CommandCompletion(
                value=one.value, label=one.label or None, description=one.description or None
            )
            for one in found
        ]
    )
