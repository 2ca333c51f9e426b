"""`agent/trust`: the user, or their editor, says which folders they trust."""

import logging
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import TrustParams, parse

_log = logging.getLogger(__name__)


async def run(front: Front, params: dict[str, Any]) -> object:
    """Record the decisions about folders of this workspace; other folders belong to their own sessions."""
    said = parse(TrustParams, params, method="agent/trust")
    try:
        front.dialogs.check_may_decide()
    except RpcError as error:
        _log.warning("agent/trust: %s", error.message)
        return None
    hosted = await front.hosted()
    here = hosted.session.permissions.trust.folder
    for item in said.items:
        folder = path_of(item.folder)
        try:
            if folder == here:
                _ = await hosted.session.permissions.decide_trust(trusted=item.trusted)
            elif folder is not None:
                await hosted.decide_trust(folder, trusted=item.trusted)
        except TillerError as error:
            # A notification has no answer: the session tells it.
            _log.warning("agent/trust of %s: %s", folder, error)
    await front.flush()
    return None
