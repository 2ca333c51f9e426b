"""`agent/session/close`: end what goes on in a session and let it go."""

from typing import Any

from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import SessionCloseParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Close it; it stays stored. One that is not loaded is closed already."""
    asked = parse(SessionCloseParams, params, method="agent/session/close")
    await front.release(asked.session)
    return {}
