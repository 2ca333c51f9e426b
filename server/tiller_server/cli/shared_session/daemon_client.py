"""Connects a command to the daemon of the user."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket

from tiller_server.agent_client.connection import AgentClient, RequestHandler


@asynccontextmanager
async def connected(
    env: Mapping[str, str], root: Path, *, handlers: Mapping[str, RequestHandler] | None = None
) -> AsyncGenerator[AgentClient | None, None]:
    """Connect to the daemon that runs; None: there is none, or it cannot be used.

    Args:
        env: Environment of this process, which goes to the daemon as that of an editor does.
        root: The workspace.
        handlers: Answers of requests of the daemon, by method.
    """
    found = _called(env, root)
    if found is None:
        yield None
        return
    reader, writer = await asyncio.open_unix_connection(sock=found[0])
    writer.write(found[1])
    client = AgentClient(writer, handlers=handlers)
    reading = asyncio.get_running_loop().create_task(client.read(reader))
    try:
        yield client
    finally:
        _ = reading.cancel()
        writer.close()


def _called(env: Mapping[str, str], root: Path) -> tuple[socket, bytes] | None:
    """Return a socket to the daemon and the first line for it; None: there is no daemon to be used."""
    if sys.platform == "win32":
        return None
    from tiller_server.daemon.shim.connection import (  # noqa: PLC0415 - needs sockets that Windows lacks
        Unreachable,
        call,
        handshake_line,
    )

    try:
        found = call(env)
    except Unreachable:
        return None
    if found is None:
        return None
    raw, token = found
    line = handshake_line(env, token=token, cwd=str(root), pid=os.getpid())
    return socket(fileno=raw.detach()), line
