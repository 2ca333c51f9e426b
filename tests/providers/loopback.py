"""A provider inside the test: answers each request with the bytes and waits that the test wrote down."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

Step = bytes | anyio.Event | type[ConnectionError]
"""Bytes to send as one HTTP chunk, an event to wait for, or: drop the connection."""


@dataclass
class Reply:
    """One answer."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    """Close without a word, as a server does with a connection it has given up."""


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Loopback:
    """What the test sees of the server."""

    url: str
    replies: list[Reply]
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    was_asked: anyio.Event = field(default_factory=anyio.Event)
    gone: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client has left."""

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        self.connections += 1
        number = self.connections
        try:
            async with stream:
                while await self._one(stream, number):
                    pass
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
            self.gone.set()

    async def _one(self, stream: anyio.abc.SocketStream, number: int) -> bool:
        self.asked.append(await _request(stream, number))
        self.was_asked.set()
        reply = self.replies.pop(0)
        if reply.silent:
            return False
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        lines = [f"{name}: {value}" for name, value in (headers | reply.headers).items()]
        head = "\r\n".join((f"HTTP/1.1 {reply.status} X", *lines, "", ""))
        await stream.send(head.encode())
        for step in reply.steps:
            if isinstance(step, bytes):
                await stream.send(b"%x\r\n%s\r\n" % (len(step), step))
            elif isinstance(step, anyio.Event):
                await self._until(step, stream)
            else:
                return False
        await stream.send(b"0\r\n\r\n")
        return True

    async def _until(self, event: anyio.Event, stream: anyio.abc.SocketStream) -> None:
        """Wait, and notice meanwhile that the client leaves."""

        async def watch() -> None:
            try:
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                self.gone.set()
                event.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await event.wait()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def loopback(*replies: Reply) -> AsyncGenerator[Loopback]:
    """Serve the replies, one after another."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django
        server = Loopback(url=f"http://127.0.0.1:{port}", replies=list(replies))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.serve)
            yield server
            tasks.cancel_scope.cancel()


def sse(*events: Any) -> list[bytes]:
    """Write events, one HTTP chunk each; a string goes out as it stands."""
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return [f"data: {text}\n\n".encode() for text in texts]


async def _request(stream: anyio.abc.SocketStream, number: int) -> Asked:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += await stream.receive()
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    return Asked(path=first.split()[1], headers=headers, body=json.loads(body), connection=number)
