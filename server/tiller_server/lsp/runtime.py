"""State that all connections of a process share, loaded when the first `initialize` has been answered.

The agent behind the front end costs some 200 ms to import. An editor that has just started gets its answer first; the
rest is loaded on a thread while the editor opens its documents.
"""

import asyncio
import importlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.jsonrpc.errors import INTERNAL_ERROR, RpcError
from tiller_server.lsp.methods import METHODS, NOTIFICATIONS
from tiller_server.lsp.transport.stdio import EXHAUSTED
from tiller_server.process.config import ServerConfig

FEATURES: Final = "tiller_server.lsp.features"
FOR_REQUESTS: Final = (
    "http.httpx_client",
    "adapters.anthropic_messages",
    "adapters.openai_completions",
    "adapters.openai_responses",
)
NOT_LOADED: Final = "the agent could not be loaded; the server's log says why. Install tillerd anew"

_log = logging.getLogger(__name__)


class Runtime:
    """Loads the agent once and owns the host of all sessions; used as a context around `serve`."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        on_loaded: Callable[[], None] = lambda: None,
        **hosting: Any,
    ) -> None:
        """Begin with nothing loaded.

        Args:
            config: The environment of the process.
            on_loaded: Called when the agent has been loaded.
            hosting: Given on to the host: another clock, another way to open sessions.
        """
        self._config = config
        self._on_loaded = on_loaded
        self._hosting = hosting
        self._tasks = asyncio.TaskGroup()
        self._loading: asyncio.Task[Any] | None = None

    @property
    def origin(self) -> ClientEnvironment:
        """Where a client comes from that this process serves directly."""
        env, home = self._config.env, self._config.home
        return ClientEnvironment(env=env, cwd=Path(env.get("PWD") or home))

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.close()
        await self._tasks.__aexit__(None, None, None)

    def warm_up(self) -> None:
        """Begin to load, unless that has begun."""
        _ = self._begun()

    def _begun(self) -> asyncio.Task[Any]:
        if self._loading is None:
            self._loading = self._tasks.create_task(self._load(), name="load the agent")
        return self._loading

    def loaded(self) -> int:
        """Count the sessions that are loaded."""
        return len(self._sessions())

    def working(self) -> int:
        """Count the sessions in which something goes on: a run, a compaction, a command of the user."""
        seen = (one.session.info.snapshot() for one in self._sessions())
        return sum(1 for one in seen if one.state != "idle" or one.activity.bash)

    def _sessions(self) -> tuple[Any, ...]:
        loading = self._loading
        if loading is None or not loading.done() or loading.cancelled():
            return ()
        host = loading.result()
        return () if isinstance(host, Exception) else host.sessions()

    async def host(self) -> Any:
        """Return the host, waiting for it to be loaded."""
        # Shielded: a request that is cancelled must not end the loading that others wait for.
        host = await asyncio.shield(self._begun())
        if isinstance(host, Exception):
            raise RpcError(INTERNAL_ERROR, NOT_LOADED, {"kind": "Internal", "retryable": False})
        return host

    def feature(self, method: str) -> ModuleType:
        """Return the module that answers a method."""
        return importlib.import_module(f"{FEATURES}.{METHODS[method]}")

    def notification(self, method: str) -> ModuleType:
        """Return the module that takes a notification."""
        return importlib.import_module(f"{FEATURES}.{NOTIFICATIONS[method]}")

    async def close(self) -> None:
        """Settle all sessions."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        host = await loading
        if not isinstance(host, Exception):
            await host.close()

    async def _load(self) -> Any:
        """Load the agent; a failure is kept, so that every request is told of it, unless it may pass."""
        try:
            module = await asyncio.to_thread(_import, METHODS)
        except Exception as error:  # noqa: BLE001 - a broken installation: told to whoever asks
            _log.exception("the agent cannot be loaded")
            if isinstance(error, OSError) and error.errno in EXHAUSTED:
                self._loading = None  # The next request tries again.
            return error
        host = module.SessionHost(self._config, **self._hosting)
        self._tasks.create_task(host.run(), name="sessions")
        await host.ready()
        self._on_loaded()
        return host


def _import(methods: Mapping[str, str]) -> ModuleType:
    for name in methods.values():
        importlib.import_module(f"{FEATURES}.{name}")
    importlib.import_module("tiller_server.lsp.plain.commands.table")
    host = importlib.import_module("tiller_server.lsp.sessions.host")
    # The first request to a provider would pay for it otherwise, on the loop's own thread.
    for name in FOR_REQUESTS:
        importlib.import_module(f"agent_core.providers.{name}")
    return host
