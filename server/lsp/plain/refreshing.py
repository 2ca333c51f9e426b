"""Has an editor ask for its code lenses again when they would be others."""

import asyncio
from contextlib import suppress
from typing import Any, Final

import anyio

from agent_core.events import (
    ChangesUpdated,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    Reader,
    RunEnded,
    RunStarted,
)
from server.lsp.client_options import is_plain
from server.lsp.plain.diff_document import takes
from server.lsp.protocol import Connection
from server.lsp.rpc import RpcError
from server.lsp.wire import AgentOptions

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

    def __init__(self, connection: Connection, options: AgentOptions) -> None:
        self._connection = connection
        params = connection.client_params
        said = options.plain.lens if options.plain is not None else None
        wanted = is_plain(params, options) if said is None else said
        self._is_wanted = wanted and takes(params, "workspace", "codeLens", "refreshSupport")
        self._readers: list[Reader] = []

    async def follow(self, hosted: Any) -> None:
        """Tell the editor until the session is over or the editor has left."""
        if not self._is_wanted:
            return
        reader = hosted.session.subscribe()
        self._readers.append(reader)
        news = asyncio.Event()
        async with anyio.create_task_group() as group:

            async def refresh() -> None:
                while True:
                    await news.wait()
                    await asyncio.sleep(PAUSE_S)
                    news.clear()
                    with suppress(RpcError, TimeoutError, ConnectionError):
                        await self._connection.request(REFRESH, timeout_s=ANSWER_S)

            group.start_soon(refresh)
            async for stamped in reader:
                if isinstance(stamped.event, MATTERS):
                    news.set()
            group.cancel_scope.cancel()
        self._readers.remove(reader)

    def close(self) -> None:
        """Stop; the editor has left."""
        for reader in self._readers:
            reader.close()
