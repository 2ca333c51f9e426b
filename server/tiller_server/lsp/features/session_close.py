"""`agent/session/close`: end what goes on in a session and let it go."""

from typing import Any

from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionCloseParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Close it; it stays stored. One that is not loaded is closed already."""
    asked = parse(SessionCloseParams, params, method="agent/session/close")
    await client.release(asked.session)
    return {}
