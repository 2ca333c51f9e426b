"""State that all connections of a process share, loaded when the first `initialize` has been answered.

The agent behind the front end costs some 200 ms to import. An editor that has just started gets its answer first; the
rest is loaded on a thread while the editor opens its documents.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, Self

from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.workspace_folders import Folders
from tiller_server.lsp.jsonrpc.errors import INTERNAL_ERROR, RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import Params
from tiller_server.lsp.transport.stdio import EXHAUSTED
from tiller_server.process.config import ServerConfig

NOT_LOADED: Final = "the agent could not be loaded; the server's log says why. Install tillerd anew"

_log = logging.getLogger(__name__)


class AgentConnection(Protocol):
    """One connection, when the agent is loaded: a `loaded_agent.LoadedConnection`."""

    async def call(self, method: str, params: Params, /) -> object:
        """Run the handler of a method; return its result as JSON."""
        ...

    async def report_chat(self, change: Literal["opened", "saved"], document: Document, /) -> None:
        """Pass on that a document was opened or saved, if it is the chat file."""
        ...

    async def follow_roots(self) -> None:
        """Record that the client has opened or closed folders."""
        ...

    async def detach(self) -> None:
        """End the subscriptions of the client, which has left."""
        ...


class Agent(Protocol):
    """The agent of a process: a `loaded_agent.LoadedAgent`, whose module must not be imported before it is needed."""

    async def run(self) -> None:
        """Hold all sessions until `close`."""
        ...

    async def ready(self) -> None:
        """Wait until sessions can be opened."""
        ...

    async def close(self) -> None:
        """Settle all sessions."""
        ...

    def sessions(self) -> Sequence[Any]:
        """Return the sessions that are loaded; their class is part of what is loaded."""
        ...

    def figures(self) -> Mapping[str, float]:
        """Return figures for `tiller daemon metrics`, by the name of the metric."""
        ...

    def working(self) -> int:
        """Count the sessions in which something goes on."""
        ...

    def connect(
        self,
        connection: LspConnection,
        mirror: Mirror,
        folders: Folders,
        *,
        origin: ClientEnvironment,
    ) -> AgentConnection:
        """Create the loaded half of a connection."""
        ...


class Runtime:
    """Loads the agent once and owns it; used as a context around `serve`."""

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
            hosting: Passed on to `SessionHost`: another clock, another way to open sessions.
        """
        self._config = config
        self._on_loaded = on_loaded
        self._hosting = hosting
        self._tasks = asyncio.TaskGroup()
        self._loading: asyncio.Task[Agent | Exception] | None = None

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

    def _begun(self) -> asyncio.Task[Agent | Exception]:
        if self._loading is None:
            self._loading = self._tasks.create_task(self._load(), name="load the agent")
        return self._loading

    def loaded(self) -> int:
        """Count the sessions that are loaded."""
        agent = self._loaded_agent()
        return 0 if agent is None else len(agent.sessions())

    def working(self) -> int:
        """Count the sessions in which something goes on: a run, a compaction, a command of the user."""
        agent = self._loaded_agent()
        return 0 if agent is None else agent.working()

    def figures(self) -> Mapping[str, float]:
        """Return figures for `tiller daemon metrics`; none before the agent is loaded."""
        agent = self._loaded_agent()
        return {} if agent is None else agent.figures()

    def _loaded_agent(self) -> Agent | None:
        loading = self._loading
        if loading is None or not loading.done() or loading.cancelled():
            return None
        agent = loading.result()
        return None if isinstance(agent, Exception) else agent

    async def agent(self) -> Agent:
        """Return the agent, waiting for it to be loaded."""
        # Shielded: a request that is cancelled must not end the loading that others wait for.
        agent = await asyncio.shield(self._begun())
        if isinstance(agent, Exception):
            raise RpcError(INTERNAL_ERROR, NOT_LOADED, {"kind": "Internal", "retryable": False})
        return agent

    async def close(self) -> None:
        """Settle all sessions."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        agent = await loading
        if not isinstance(agent, Exception):
            await agent.close()

    async def _load(self) -> Agent | Exception:
        """Load the agent; a failure is kept, so that every request is told of it, unless it may pass."""
        try:
            create_agent = await asyncio.to_thread(_import)
        except Exception as error:  # noqa: BLE001 - a broken installation: told to whoever asks
            _log.exception("the agent cannot be loaded")
            if isinstance(error, OSError) and error.errno in EXHAUSTED:
                self._loading = None  # The next request tries again.
            return error
        agent = create_agent(self._config, **self._hosting)
        self._tasks.create_task(agent.run(), name="sessions")
        await agent.ready()
        self._on_loaded()
        self._tasks.create_task(_import_rest(), name="import the rest")
        return agent


async def _import_rest() -> None:
    """Import what sessions need later: else their first use of it would hold up the loop of all connections."""
    from tiller_server.process.deferred_modules import import_deferred

    try:
        await asyncio.to_thread(import_deferred)
    except Exception:  # noqa: BLE001 - a broken installation: whoever uses the module is told
        _log.exception("a part of the agent cannot be loaded")


def _import() -> Callable[..., Agent]:
    # ruff: noqa: PLC0415 - the first answer must not wait for any of it
    # The first request to a provider would pay for the adapters otherwise, on the loop's own thread.
    from agent_core.providers.adapters import (
        anthropic_messages,
        openai_completions,
        openai_responses,
    )
    from agent_core.providers.http import httpx_client
    from tiller_server.lsp.loaded_agent import LoadedAgent

    _ = (anthropic_messages, openai_completions, openai_responses, httpx_client)
    return LoadedAgent
