"""Has an editor ask for its code lenses again when they would be others."""

from contextlib import suppress
from typing import Final

from agent_core.events import (
    ChangesUpdated,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    RunEnded,
    RunStarted,
)
from tiller_server.lsp.changes.diagnostics import DisplayedSession
from tiller_server.lsp.changes.diff_document import has_capability
from tiller_server.lsp.changes.session_watch import DebouncedWatch
from tiller_server.lsp.clients.options import is_plain
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.wire.capabilities import AgentOptions

REFRESH: Final = "workspace/codeLens/refresh"
PAUSE_S: Final = 0.3
ANSWER_S: Final = 5.0
MATTERS: Final = (
    RunStarted,
    RunEnded,
    ChangesUpdated,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
)


class LensRefresh:
    """Follows sessions for an editor that shows lenses and can be told that they have changed."""

    def __init__(self, connection: LspConnection, options: AgentOptions) -> None:
        self._connection = connection
        params = connection.client_params
        said = options.plain.lens if options.plain is not None else None
        wanted = is_plain(params, options) if said is None else said
        self._is_wanted = wanted and has_capability(
            params, "workspace", "codeLens", "refreshSupport"
        )
        self._following = DebouncedWatch(*MATTERS, pause_s=PAUSE_S)

    async def follow(self, open_session: DisplayedSession) -> None:
        """Report the editor until the session is over or the editor has left."""
        if self._is_wanted:
            await self._following.follow(open_session.session, self._refresh)

    def close(self) -> None:
        """Stop; the editor has left."""
        self._following.close()

    async def _refresh(self) -> None:
        with suppress(RpcError, TimeoutError, ConnectionError):
            await self._connection.request(REFRESH, timeout_s=ANSWER_S)
