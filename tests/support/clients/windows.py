"""One server with any number of windows before it, each a connection of its own, in this process."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.clients.server import Ground
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL, Profile
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

Json = dict[str, Any]


class Windows:
    """The windows of one user."""

    def __init__(self, runtime: Runtime, ground: Ground) -> None:
        self.runtime = runtime
        self.ground = ground

    @asynccontextmanager
    async def window(
        self,
        profile: Profile = PANEL,
        *,
        root: Path | None = None,
        folders: tuple[Path, ...] = (),
        **agent: Any,
    ) -> AsyncGenerator[RawClient]:
        """Open a window for as long as the block; then its connection breaks off."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        app = App(self.runtime)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(app.connection.serve(reader, writer))
            async with await RawClient.over_socket(theirs) as client:
                try:
                    options = {"agent": agent} if agent else None
                    await client.initialize(
                        profile, root=root or self.ground.root, folders=folders, options=options
                    )
                    yield client
                finally:
                    app.connection.close()
                    await asyncio.wait({serving})

    async def sessions(self) -> Mapping[str, Any]:
        """Give the sessions that are loaded, by id."""
        host = await self.runtime.agent()
        return {one.session.id: one for one in host.sessions()}


@asynccontextmanager
async def serving(ground: Ground, **hosting: Any) -> AsyncGenerator[Windows]:
    """Serve for as long as the block."""
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(Runtime(config, **hosting))
        yield Windows(runtime, ground)


async def opened(client: RawClient, session: str | None = None, **more: Any) -> Any:
    """Open a session and give its snapshot."""
    named = {} if session is None else {"session": session}
    return await client.request("agent/session/open", {**named, **more})
