"""Clients that the daemon serves now: editors that speak LSP, and clients of the Agent Client Protocol."""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from agent_core.kernel import Clock, JsonObject
from tiller_server.daemon.admission.handshake import Handshake
from tiller_server.lsp.app import App
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream

_log = logging.getLogger(__name__)


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """End it."""
        ...


class ServedClients:
    """All of them."""

    def __init__(self, clock: Clock) -> None:
        self.lsp: set[LspConnection] = set()
        """Connections of editors."""
        self._clock = clock
        self._acp: set[Closable] = set()
        self._is_closed = False

    @property
    def count(self) -> int:
        """Clients that are served now."""
        return len(self.lsp) + len(self._acp)

    async def serve_lsp(
        self, app: App, handshake: Handshake, reader: InputStream, sink: Sink
    ) -> None:
        """Serve an editor until it leaves."""
        self.lsp.add(app.connection)
        if self._is_closed:
            app.connection.close()
        try:
            code = await app.connection.serve(reader, sink)
            _log.info("The client of process %d has left (%d).", handshake.pid, code)
        finally:
            self.lsp.discard(app.connection)

    async def serve_acp(
        self,
        make_app: Callable[[JsonObject], App],
        handshake: Handshake,
        reader: InputStream,
        sink: Sink,
        *,
        env: Mapping[str, str],
    ) -> None:
        """Serve a client of ACP until it leaves.

        Args:
            make_app: Creates a connection to the agent, with MCP servers of the client; called once per session.
            handshake: First line of the client.
            reader: Bytes of the client, after that line.
            sink: Bytes to the client; closed at the end.
            env: Environment of the client.
        """
        # Editors that speak LSP do not wait for it.
        from tiller_server.acp.connection import AcpConnection  # noqa: PLC0415 - at first use
        from tiller_server.agent_client.in_process import attached  # noqa: PLC0415 - at first use

        connection = AcpConnection(
            reader,
            sink,
            lambda handlers, servers: attached(make_app(servers), handlers=handlers),
            client_id=handshake.client or f"process-{handshake.pid}-{self._clock.now_ms()}",
            env=env,
            clock=self._clock,
            newest=handshake.newest,
        )
        self._acp.add(connection)
        if self._is_closed:
            connection.close()
        try:
            await connection.serve()
            _log.info("The ACP client of process %d has left.", handshake.pid)
        finally:
            self._acp.discard(connection)

    def close_all(self) -> None:
        """End all connections, and each that comes later."""
        self._is_closed = True
        for connection in (*self.lsp, *self._acp):
            connection.close()
