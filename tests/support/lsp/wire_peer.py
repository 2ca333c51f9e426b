"""The client's end of a connection in tests: says exactly the bytes it is told to say."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.framing import FrameReader, frame

WAIT_S = 10.0


class PeerGone(Exception):
    """The server closed the connection."""


class Peer:
    """Sends messages and reads what comes, in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._reader = reader
        self._frames = FrameReader()
        self._unclaimed: list[dict[str, Any]] = []

    def send_raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, **members: Any) -> None:
        """Send one message with these members, "jsonrpc" added."""
        self.send_raw(frame(json.dumps({"jsonrpc": "2.0", **members}).encode()))

    async def read(self) -> dict[str, Any]:
        """Give the next message; raises PeerGone at the end of the stream."""
        if self._unclaimed:
            return self._unclaimed.pop(0)
        return await self._read_new()

    async def answer_to(self, request_id: Any) -> dict[str, Any]:
        """Give the response with this id; what comes before it stays to be read."""
        passed: list[dict[str, Any]] = []
        while True:
            message = await self.read()
            is_same = message.get("id") == request_id and type(message["id"]) is type(request_id)
            if "method" not in message and is_same:
                self._unclaimed = passed + self._unclaimed
                return message
            passed.append(message)

    async def ask(self, request_id: Any, method: str, **rest: Any) -> dict[str, Any]:
        """Send a request and give its response."""
        self.send(id=request_id, method=method, **rest)
        return await self.answer_to(request_id)

    async def initialize(self, **capabilities: Any) -> dict[str, Any]:
        """Open the session as an editor does."""
        params = {"processId": None, "rootUri": None, "capabilities": capabilities}
        answer = await self.ask("init", "initialize", params=params)
        self.send(method="initialized", params={})
        return answer

    async def read_to_end(self) -> list[dict[str, Any]]:
        """Give everything up to the end of the stream."""
        messages: list[dict[str, Any]] = []
        while True:
            try:
                messages.append(await self.read())
            except PeerGone:
                return messages

    async def _read_new(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            while (body := self._frames.take()) is None:
                try:
                    data = await self._reader.read(65536)
                except ConnectionError:
                    data = b""
                if not data:
                    raise PeerGone
                self._frames.feed(data)
        return json.loads(body)


class Served:
    """A connection that is being served, and its client."""

    def __init__(self, connection: LspConnection, peer: Peer, done: asyncio.Task[int]) -> None:
        self.connection = connection
        self.peer = peer
        self._done = done

    def cancel(self) -> None:
        """Cancel the task that serves."""
        self._done.cancel()

    async def exit_code(self) -> int:
        """Wait until serving has ended."""
        async with asyncio.timeout(WAIT_S):
            return await asyncio.shield(self._done)


@asynccontextmanager
async def serving(
    connection: LspConnection,
    *,
    receive_buffer: int | None = None,
    parent: Literal["watch", "ignore"] = "ignore",
) -> AsyncGenerator[Served, None]:
    """Serve a connection over a socket pair; both ends are closed afterwards.

    Args:
        connection: What serves.
        parent: As for `serve`.
        receive_buffer: Size of the client's buffer in the kernel, for clients that do not read.
    """
    ours, theirs = socket.socketpair()
    if receive_buffer is not None:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, receive_buffer)
    reader, writer = await asyncio.open_connection(sock=ours)
    peer = Peer(*await asyncio.open_connection(sock=theirs))
    async with asyncio.TaskGroup() as tasks:
        done = tasks.create_task(connection.serve(reader, writer, parent=parent))
        try:
            yield Served(connection, peer, done)
        finally:
            peer.writer.transport.abort()
            connection.close()
