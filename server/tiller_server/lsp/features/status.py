"""`agent/status`: identity, open sessions, providers and versions of this server."""

import os
import platform

from agent_core.kernel import rfc3339
from tiller_server import VERSION
from tiller_server.lsp.feature import feature
from tiller_server.lsp.methods import PROTOCOL
from tiller_server.lsp.operations.accounts import account, account_status
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.accounts import (
    STATUS,
    DaemonStatus,
    SessionStatus,
    StatusParams,
    StatusResult,
    VersionTable,
)


@feature(STATUS)
async def status(client: ConnectedClient, _params: StatusParams) -> StatusResult:
    """Return the state of the server."""
    host = client.host
    providers = await account_status(client)
    return StatusResult(
        daemon=DaemonStatus(
            pid=os.getpid(),
            started_at=rfc3339(host.started_ms),
            durable=client.origin.pid is not None,
        ),
        sessions=[
            SessionStatus(
                session=open_session.session.id,
                workspace=open_session.root.as_uri(),
                state=open_session.session.info.snapshot().state,
                clients=len(open_session.attached_clients),
            )
            for open_session in host.sessions()
        ],
        auth=[account(client, one) for one in providers.values()],
        versions=VersionTable(server=VERSION, protocol=PROTOCOL, python=platform.python_version()),
        quirks=[
            f"{name}={str(value).lower()}"
            for name, value in client.editor.quirks_in_force().items()
        ],
    )
