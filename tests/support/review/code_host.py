"""A host of code on a loopback port: what every one of them does, whatever it is called."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jsonschema import Draft202012Validator

from tests.support.provider.http import HttpRequest, read_http_request, whole

DATA = Path(__file__).parents[2] / "data" / "code_hosts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is answered."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Fault:
    """Something that goes wrong with requests of one kind, so many times."""

    method: str
    path: str
    """A regular expression that is found in the path."""
    reply: Reply | None
    """None drops the connection."""
    times: int = 1
    is_done: bool = False
    """Whether what was asked is done all the same, and only the answer is lost."""
    is_stalled: bool = False
    """Whether no answer comes until the client leaves."""


class Shapes:
    """The published shapes of request bodies, held against what is sent; nothing may be sent besides."""

    def __init__(self, name: str) -> None:
        text = (DATA / name).read_text(encoding="utf-8")
        kinds = {key: value for key, value in json.loads(text).items() if " " in key}
        self._kinds = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", kind)), Draft202012Validator(_closed(shape)))
            for kind, shape in kinds.items()
        ]

    def problems(self, request: HttpRequest, body: Any) -> list[str]:
        what = f"{request.method} {request.path.removeprefix('/api/v4')}"
        for kind, validator in self._kinds:
            if kind.fullmatch(what):
                return [f"{what}: {error.message}" for error in validator.iter_errors(body)]
        return [f"{what}: no such request is published"]


class Behaviour(Protocol):
    """What one host does with a request that is in order."""

    def answer(self, request: HttpRequest, body: Any) -> Reply: ...


class CodeHost:
    """The server: keeps every request, and fails as a test wants it to."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.requests: list[tuple[HttpRequest, Any]] = []
        self.faults: list[Fault] = []
        self.events: dict[int, Callable[[], object]] = {}
        """Happen before the request of that number, from 1, is answered: a push, for example."""
        self.url = ""
        self._is_stalled = False

    def writes(self) -> list[str]:
        """Give what was sent to change something, as method and path."""
        return [
            f"{request.method} {request.path}"
            for request, body in self.requests
            if request.method != "GET" and "query (" not in str((body or {}).get("query", ""))
        ]

    def forget(self) -> None:
        self.requests.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_http_request(reader)) is not None:
                reply = self._reply(request)
                if reply is None:
                    if self._is_stalled:
                        await reader.read()
                    break
                writer.write(whole(reply.status, reply.body, reply.headers))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _reply(self, request: HttpRequest) -> Reply | None:
        body = json.loads(request.body) if request.body else None
        self.requests.append((request, body))
        if (event := self.events.pop(len(self.requests), None)) is not None:
            event()
        fault = self._fault(request)
        if fault is None:
            return self._behaviour.answer(request, body)
        fault.times -= 1
        self._is_stalled = fault.is_stalled
        if fault.is_done:
            self._behaviour.answer(request, body)
        return fault.reply

    def _fault(self, request: HttpRequest) -> Fault | None:
        for fault in self.faults:
            if (
                fault.times
                and fault.method == request.method
                and re.search(fault.path, request.path)
            ):
                return fault
        return None


@asynccontextmanager
async def serving(behaviour: Behaviour) -> AsyncGenerator[CodeHost]:
    """Serve on a free port for as long as the block."""
    host = CodeHost(behaviour)
    server = await asyncio.start_server(host.serve, host="127.0.0.1", port=0)
    port = server.sockets[0].getsockname()[1]
    host.url = f"http://127.0.0.1:{port}"
    try:
        yield host
    finally:
        server.close()


def page(items: Sequence[Any], *, after: str | None, size: int) -> tuple[list[Any], str | None]:
    """Give a page, and where the next begins; None at the end."""
    start = int(after or 0)
    end = start + size
    return list(items[start:end]), str(end) if end < len(items) else None


def _closed(shape: Any) -> Any:
    if isinstance(shape, list):
        return [_closed(item) for item in shape]
    if not isinstance(shape, dict):
        return shape
    inner = {key: _closed(value) for key, value in shape.items()}
    return {**inner, "additionalProperties": False} if "properties" in inner else inner
