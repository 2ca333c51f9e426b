"""The model of this machine, behind the adapter of the wire that its server speaks."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager

from msgspec.structs import replace

from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.local.server import LocalServer
from agent_core.providers.port import Model, ModelFacts, ModelRequest, Part

Inner = Callable[[ModelFacts], Model]
"""Makes the model that asks a server at the base URL of the facts."""
DEAD = ("network", "timeout", "protocol")
"""What a request says of a process that has died or hangs: it never breaks off an answer otherwise."""


class LocalModel:
    """Starts the server with the first request and asks it; nothing runs before."""

    def __init__(self, facts: ModelFacts, *, server: LocalServer, inner: Inner) -> None:
        self._facts = facts
        self._server = server
        self._inner = inner

    @property
    def facts(self) -> ModelFacts:
        """What is known of it."""
        return self._facts

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncGenerator[Part, None]]:
        """Ask; leaving the context closes the connection at once, and with it ends the work on the answer.

        A server that breaks off or falls silent is ended, so that the next request starts another.
        """
        async with AsyncExitStack() as stack:
            url = await self._server.url()
            try:
                parts = await stack.enter_async_context(self._asked(url, request))
            except ProviderError as error:
                await self._judge(error, url)
                if error.reason != "network":
                    raise
                # The process died before this request came to it: a new one is asked, once.
                url = await self._server.url()
                parts = await stack.enter_async_context(self._asked(url, request))
            yield await stack.enter_async_context(aclosing(self._watched(parts, url)))

    def _asked(
        self, url: str, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Part, None]]:
        return self._inner(replace(self._facts, base_url=url)).stream(request)

    async def _watched(
        self, parts: AsyncGenerator[Part, None], url: str
    ) -> AsyncGenerator[Part, None]:
        try:
            async for part in parts:
                yield part
        except ProviderError as error:
            await self._judge(error, url)
            raise

    async def _judge(self, error: ProviderError, url: str) -> None:
        if error.reason in DEAD:
            await self._server.replace(url)
