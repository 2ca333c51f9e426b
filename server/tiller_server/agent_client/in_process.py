"""A connection to a server in this process."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from socket import socketpair

from tiller_server.agent_client.connection import AgentClient, RequestHandler
from tiller_server.lsp.app import App


@asynccontextmanager
async def attached(
    app: App, *, handlers: Mapping[str, RequestHandler] | None = None
) -> AsyncGenerator[AgentClient]:
    """Serve a client in this process; the connection ends with the context.

    Args:
        app: The server's half of the connection; nothing else uses it.
        handlers: Answers of requests of the server, by method.
    """
    ours, theirs = socketpair()
    with closing(ours), closing(theirs):
        reader, sink = await asyncio.open_connection(sock=ours)
        with closing(sink):
            their_reader, their_sink = await asyncio.open_connection(sock=theirs)
            with closing(their_sink):
                client = AgentClient(sink, handlers=handlers)
                async with asyncio.TaskGroup() as tasks:
                    serving = tasks.create_task(app.connection.serve(their_reader, their_sink))
                    reading = tasks.create_task(client.read(reader))
                    try:
                        yield client
                    finally:
                        app.connection.close()
                        _ = await asyncio.wait([serving])
                        _ = reading.cancel()
