"""The transport to a server that is reached over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio import to_thread

from agent_core.mcp.adapters.library import Wire, load
from agent_core.mcp.adapters.stdio import MESSAGE_BYTES
from agent_core.mcp.definitions import Http, without_password
from agent_core.mcp.port import ServerGone


@asynccontextmanager
async def http(way: Http) -> AsyncGenerator[Wire]:
    """Exchange messages with a server that runs already.

    Raises:
        ServerFailed: Its address cannot be used, or it broke the connection.
    """
    await load("mcp.client.streamable_http", "httpcore2", "agent_core.mcp.adapters.http_client")
    from httpx2 import HTTPError  # noqa: PLC0415 - loaded by now
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - as above

    from agent_core.mcp.adapters.http_client import HttpFailureRecorder, make_client  # noqa: PLC0415 - as above

    over = anyio.Event()
    seen = HttpFailureRecorder()
    client = await to_thread.run_sync(make_client, way, seen)
    try:
        async with (
            client,
            streamable_http_client(
                way.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
            ) as streams,
        ):
            yield Wire(streams=streams, hint=lambda: seen.why, over=over)
    except* (HTTPError, OSError) as group:
        over.set()
        why = seen.why or f"{without_password(way.url)} cannot be reached: {_first(group)}"
        raise ServerGone(why) from group


def _first(group: BaseExceptionGroup[Exception]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".rstrip(": ")
