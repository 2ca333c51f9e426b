"""`agent/status`: identity, open sessions, providers and versions of this server."""

import os
import platform
from typing import Any

from agent_core.kernel import rfc3339
from tiller_server import VERSION
from tiller_server.lsp.methods import PROTOCOL
from tiller_server.lsp.operations.accounts import account, account_status
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import StatusParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the state of the server."""
    _ = parse(StatusParams, params, method="agent/status")
    host = client.host
    providers = await account_status(client)
    return {
        "daemon": {
            "pid": os.getpid(),
            "startedAt": rfc3339(host.started_ms),
            "durable": client.origin.pid is not None,
        },
        "sessions": [
            {
                "session": open_session.session.id,
                "workspace": open_session.root.as_uri(),
                "state": open_session.session.info.snapshot().state,
                "clients": len(open_session.attached_clients),
            }
            for open_session in host.sessions()
        ],
        "auth": [account(client, one) for one in providers.values()],
        "versions": {"server": VERSION, "protocol": PROTOCOL, "python": platform.python_version()},
        "quirks": [
            f"{name}={str(value).lower()}"
            for name, value in client.editor.quirks_in_force().items()
        ],
    }
