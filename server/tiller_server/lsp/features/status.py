"""`agent/status`: identity, open sessions, providers and versions of this server."""

import os
import platform
from typing import Any

from agent_core.kernel import rfc3339
from tiller_server import VERSION
from tiller_server.lsp.methods import PROTOCOL
from tiller_server.lsp.operations.accounts import account, as_they_stand
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import StatusParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Return the state of the server."""
    _ = parse(StatusParams, params, method="agent/status")
    host = front.host
    providers = await as_they_stand(front)
    return {
        "daemon": {
            "pid": os.getpid(),
            "startedAt": rfc3339(host.started_ms),
            "durable": front.origin.pid is not None,
        },
        "sessions": [
            {
                "session": hosted.session.id,
                "workspace": hosted.root.as_uri(),
                "state": hosted.session.info.snapshot().state,
                "clients": len(hosted.fronts),
            }
            for hosted in host.sessions()
        ],
        "auth": [account(front, one) for one in providers.values()],
        "versions": {"server": VERSION, "protocol": PROTOCOL, "python": platform.python_version()},
        "quirks": [
            f"{name}={str(value).lower()}" for name, value in front.editor.quirks_in_force().items()
        ],
    }
