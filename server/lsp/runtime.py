"""What all connections of a process share, loaded when the first `initialize` has been answered.

The agent behind the front end costs some 200 ms to import. An editor that has just started gets its answer first; the
rest is loaded on a thread while the editor opens its documents.
"""

import asyncio
import importlib
import logging
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from server.lsp.config import ServerConfig
from server.lsp.names import METHODS

FEATURES: Final = "server.lsp.features"

_log = logging.getLogger(__name__)


class Runtime:
    """Loads the agent once and owns the host of all sessions; used as a context around `serve`."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._tasks = asyncio.TaskGroup()
        self._loading: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> "Runtime":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.close()
        await self._tasks.__aexit__(None, None, None)

    def warm_up(self) -> None:
        """Begin to load, unless that has begun."""
        if self._loading is None:
            self._loading = self._tasks.create_task(self._load(), name="load the agent")

    async def host(self) -> Any:
        """Give the host, waiting for it to be loaded."""
        self.warm_up()
        assert self._loading is not None
        return await asyncio.shield(self._loading)

    def feature(self, method: str) -> ModuleType:
        """Give the module that answers a method."""
        return importlib.import_module(f"{FEATURES}.{METHODS[method]}")

    async def close(self) -> None:
        """Settle all sessions."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        host = await loading
        await host.close()

    async def _load(self) -> Any:
        module = await asyncio.to_thread(_import, METHODS)
        host = module.Host(self._config)
        self._tasks.create_task(host.run(), name="sessions")
        await host.ready()
        return host


def _import(methods: Mapping[str, str]) -> ModuleType:
    for name in methods.values():
        importlib.import_module(f"{FEATURES}.{name}")
    importlib.import_module("server.lsp.features.commands")
    return importlib.import_module("server.lsp.host")
