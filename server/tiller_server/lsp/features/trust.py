"""`agent/trust`: the user, or their editor, says which folders they trust."""

import logging
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import TrustParams, parse

_log = logging.getLogger(__name__)


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Record the decisions about folders of this workspace; other folders belong to their own sessions."""
    said = parse(TrustParams, params, method="agent/trust")
    try:
        client.dialogs.check_may_decide()
    except RpcError as error:
        _log.warning("agent/trust: %s", error.message)
        return None
    open_session = await client.resolve_session()
    here = open_session.session.permissions.trust.folder
    for item in said.items:
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
    return None
