"""One server in this process with any number of editors before it."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from agent_core.session import AgentSession
from tests.support.clients.server import Ground
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import Handler
from tests.support.lsp.lsp_profiles import Profile
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig


class Office:
    """One server with any number of editors before it."""

    def __init__(self, runtime: Runtime, ground: Ground, stack: AsyncExitStack) -> None:
        self.runtime = runtime
        self.ground = ground
        self._stack = stack

    async def seat(
        self, profile: Profile, *, handlers: Mapping[str, Handler] | None = None, **agent: Any
    ) -> RawClient:
        """Attach an editor to the session of the workspace, until the end of the test."""
        return await self._stack.enter_async_context(
            self.visitor(profile, handlers=handlers, **agent)
        )

    @asynccontextmanager
    async def visitor(
        self, profile: Profile, *, handlers: Mapping[str, Handler] | None = None, **agent: Any
    ) -> AsyncGenerator[RawClient]:
        """Attach an editor for as long as the block; `handlers` answer from the first message on."""
        async with _connected(self.runtime) as client:
            client.handlers.update(handlers or {})
            options = {"agent": agent} if agent else None
            await client.initialize(profile, root=self.ground.root, options=options)
            await client.request("agent/session/open", {})
            yield client

    async def session(self) -> AgentSession:
        """Give the session that everybody is attached to."""
        (hosted,) = (await self.runtime.agent()).sessions()
        return hosted.session


@asynccontextmanager
async def _connected(runtime: Runtime) -> AsyncGenerator[RawClient]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    app = App(runtime)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app.connection.serve(reader, writer))
        async with await RawClient.over_socket(theirs) as client:
            try:
                yield client
            finally:
                app.connection.close()


@asynccontextmanager
async def opened(ground: Ground) -> AsyncGenerator[Office]:
    """Run the server for as long as the block."""
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime, AsyncExitStack() as stack:
        yield Office(runtime, ground, stack)


async def soon(condition: Callable[[], object]) -> None:
    """Wait until something holds that sets no event: what a client has received for one."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what a client has received sets no event
            await asyncio.sleep(0.01)
