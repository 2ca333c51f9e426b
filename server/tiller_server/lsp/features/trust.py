"""`agent/trust`: the user, or their editor, says which folders they trust."""

import logging

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.feature import feature
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.editor import TRUST, TrustParams

_log = logging.getLogger(__name__)


@feature(TRUST)
async def trust(client: ConnectedClient, params: TrustParams) -> None:
    """Record the decisions about folders of this workspace; other folders belong to their own sessions."""
    try:
        client.dialogs.check_may_decide()
    except RpcError as error:
        _log.warning("agent/trust: %s", error.message)
        return
    open_session = await client.resolve_session()
    here = open_session.session.permissions.trust.folder
    for item in params.items:
        folder = path_of(item.folder)
        try:
            if folder == here:
                _ = await open_session.session.permissions.decide_trust(trusted=item.trusted)
            elif folder is not None:
                await open_session.decide_trust(folder, trusted=item.trusted)
        except TillerError as error:
            # A notification has no answer: the session tells it.
            _log.warning("agent/trust of %s: %s", folder, error)
    await client.flush()
