"""Serves an editor that does not exist, so that the first real one does not pay for what is loaded and made once."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from tiller_server.lsp.app import App
from tiller_server.lsp.transport.framing import frame

CAPABILITIES: Final[Mapping[str, Any]] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"applyEdit": True, "workspaceFolders": True},
    "textDocument": {"synchronization": {"didSave": True}},
}
VISIT: Final[tuple[dict[str, Any], ...]] = (
    {"id": 1, "method": "initialize", "params": {"capabilities": CAPABILITIES}},
    {"method": "initialized", "params": {}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
)
TIMES: Final = 2
"""Number of rehearsals. The second one runs with the objects that the first one creates at its end."""


class _Nowhere:
    """Sink that discards everything."""

    def write(self, data: bytes, /) -> None:  # pyright: ignore[reportUnusedParameter] - the port's
        """Forget it."""

    async def drain(self) -> None:
        """Wait for nothing."""

    def close(self) -> None:
        """End nothing."""

    async def wait_closed(self) -> None:
        """Wait for nothing."""


async def rehearse(app: App) -> None:
    """Shake hands, and say goodbye."""
    reader = asyncio.StreamReader()
    for message in VISIT:
        reader.feed_data(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))
    reader.feed_eof()
    _ = await app.connection.serve(reader, _Nowhere())
