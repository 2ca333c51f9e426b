"""A login server inside the test: it answers each path with what the test wrote down, and remembers what it was asked."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import anyio
import anyio.abc

Json = dict[str, Any]
Answer = tuple[int, object]


@dataclass
class Heard:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        """What a form held."""
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    @property
    def json(self) -> Json:
        """What a JSON body held."""
        return json.loads(self.body)


@dataclass
class AuthServer:
    """What the test sees of it."""

    url: str
    answers: dict[str, list[Answer]]
    """By path; the last answer of a path is given again and again. An object goes as JSON, bytes as they are."""
    heard: list[Heard] = field(default_factory=list)
    held: anyio.Event | None = None
    """When there is one, answers wait for it."""

    def to(self, path: str) -> list[Heard]:
        """Give the requests of a path."""
        return [one for one in self.heard if one.path.partition("?")[0] == path]

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                heard = await _read(stream)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return
            self.heard.append(heard)
            if self.held is not None:
                await self.held.wait()
            listed = self.answers.get(heard.path.partition("?")[0], [(404, {"error": "not_found"})])
            status, answer = listed.pop(0) if len(listed) > 1 else listed[0]
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            location = "location: http://127.0.0.1:1/\r\n" if 300 <= status < 400 else ""
            head = f"HTTP/1.1 {status} X\r\n{location}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            await stream.send(head.encode() + body)


@asynccontextmanager
async def auth_server(
    answers: Mapping[str, Sequence[Answer]],
) -> AsyncGenerator[AuthServer]:
    """Serve until the context is left."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django
        server = AuthServer(
            url=f"http://127.0.0.1:{port}",
            answers={path: list(given) for path, given in answers.items()},
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.serve)
            yield server
            tasks.cancel_scope.cancel()


async def _read(stream: anyio.abc.SocketStream) -> Heard:
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += await stream.receive()
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, path, _ = first.split(" ")
    return Heard(method=method, path=path, headers=headers, body=body)
