"""A web server on loopback that answers each path with the bytes that a test gives, and remembers who came."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


def page(
    body: str | bytes,
    kind: str = "text/html; charset=utf-8",
    *,
    status: str = "200 OK",
    headers: Sequence[str] = (),
) -> bytes:
    """Make a whole response."""
    raw = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close", *headers]
    if kind:
        head.append(f"Content-Type: {kind}")
    return "\r\n".join([*head, "", ""]).encode() + raw


def redirect(target: str, status: str = "302 Found") -> bytes:
    """Make a redirect."""
    return page("", "", status=status, headers=[f"Location: {target}"])


@dataclass(kw_only=True)
class WebServer:
    """The server: its port, its answers by path, and the heads of the requests that came."""

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)
    stalls: set[str] = field(default_factory=set)
    """Paths whose answer never ends."""
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split(" ", 2)[1]
            length = next(
                (
                    int(line.partition(":")[2])
                    for line in head.lower().splitlines()
                    if line.startswith("content-length:")
                ),
                0,
            )
            self.bodies.append(await reader.readexactly(length))
            missing = page("nothing here", "text/plain", status="404 Not Found")
            writer.write(self.answers.get(path.partition("?")[0], missing))
            await writer.drain()
            if path in self.stalls:
                _ = await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def web_server() -> AsyncGenerator[WebServer]:
    """Serve inside the block."""
    it = WebServer()
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()
