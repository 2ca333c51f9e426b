"""Clients of the Agent Client Protocol that the daemon serves."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_core.kernel import Clock
from tiller_server.daemon.admission.handshake import Handshake
from tiller_server.lsp.app import App
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream

if TYPE_CHECKING:
    from tiller_server.acp.connection import AcpConnection

_log = logging.getLogger(__name__)


class AcpClients:
    """All of them; a session of a client is a connection to the agent in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connections: set[AcpConnection] = set()
        self._is_closed = False

    @property
    def count(self) -> int:
        """Clients that are served now."""
        return len(self._connections)

    async def serve(
        self,
        handshake: Handshake,
        reader: InputStream,
        sink: Sink,
        *,
        make_app: Callable[[], App],
    ) -> None:
        """Serve a client until it leaves.

        Args:
            handshake: Its first line.
            reader: Bytes of the client, after that line.
            sink: Bytes to the client; closed at the end.
            make_app: Creates a connection to the agent.
        """
        # Editors that speak LSP do not wait for it.
        from tiller_server.acp.connection import AcpConnection  # noqa: PLC0415 - at first use
        from tiller_server.agent_client.connection import attached  # noqa: PLC0415 - at first use

        connection = AcpConnection(
            reader,
            sink,
            lambda handlers: attached(make_app(), handlers=handlers),
            client_id=handshake.client or f"process-{handshake.pid}-{self._clock.now_ms()}",
            env=handshake.env or {},
            clock=self._clock,
        )
        self._connections.add(connection)
        if self._is_closed:
            connection.close()
        try:
            await connection.serve()
            _log.info("The ACP client of process %d has left.", handshake.pid)
        finally:
            self._connections.discard(connection)

    def close_all(self) -> None:
        """End all connections, and each that comes later."""
        self._is_closed = True
        for connection in self._connections:
            connection.close()
