"""A fake of Feishu's platform in one process: REST API and long connection on the loopback interface.

As a program it prints its URL and reads lines from standard input, each a direct message of a person:

    python -m tests.support.lark.platform --port 8765
"""

import argparse
import asyncio
import json
import ssl
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread

from agent_core.kernel import Clock, SystemClock
from tests.support.lark import happenings
from tests.support.lark.faults import CallFault, SocketFaults
from tests.support.lark.routes import SECRET, Routes
from tests.support.lark.sockets import Sockets
from tests.support.lark.world import APP, Refused, World
from tests.support.provider.http import HttpRequest, head, read_http_request, whole

CHUNK = b"\x5a" * 65_536


class LarkPlatform:
    """The running platform. Times of its rules are those of its clock."""

    def __init__(self, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self.world = World(clock)
        self.routes = Routes(self.world)
        self.socket_faults = SocketFaults()
        self.sockets = Sockets(clock, self.socket_faults, tls)
        self.faults: list[CallFault] = []
        self.calls: list[tuple[str, str]] = []
        """Method and path of each call, also of those that were refused."""
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self, port: int = 0) -> None:
        await self.sockets.start()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def stop(self) -> None:
        await self.sockets.stop()
        if self._server is not None:
            self._server.close()
            for task in tuple(self._connections):
                task.cancel()
            await self._server.wait_closed()
        while self._connections:
            await anyio.lowlevel.checkpoint()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await read_http_request(reader)) is not None:
                await self._answer(request, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the platform stops
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._connections.discard(task)

    async def _answer(self, request: HttpRequest, writer: asyncio.StreamWriter) -> None:
        self.calls.append((request.method, request.path))
        fault = next((f for f in self.faults if f.matches(request.method, request.path)), None)
        if fault is not None:
            fault.times -= 1
            if not await self._fail(fault, request, writer):
                return
        if "/resources/" in request.path:
            await self._send_resource(request, writer)
            return
        try:
            body, status, headers = await self._apply(request), 200, {}
        except Refused as error:
            body, status, headers = _refusal(error), error.status, error.headers
        writer.write(whole(status, body, headers))
        await writer.drain()

    async def _fail(
        self, fault: CallFault, request: HttpRequest, writer: asyncio.StreamWriter
    ) -> bool:
        """Act as a fault wants; returns whether the call goes on."""
        if fault.kind.startswith("apply"):
            with suppress(Refused):
                await self._apply(request)
        if fault.kind in {"hang", "apply_and_hang"}:
            await asyncio.sleep(3600)
        if fault.kind == "garbage":
            writer.write(whole(200, "<html>a proxy</html>"))
        elif fault.kind == "apply_and_fail":
            writer.write(whole(502, {"code": 2200, "msg": "Internal Error"}))
        else:
            body = {"code": fault.code, "msg": "fault"}
            writer.write(whole(fault.status, body, fault.headers))
        await writer.drain()
        return False

    async def _apply(self, request: HttpRequest) -> Mapping[str, Any]:
        if request.path == "/callback/ws/endpoint":
            return await self._endpoint(request)
        if request.path.endswith("/tenant_access_token/internal"):
            return self.routes.issue_token(request)
        return self.routes.answer(request)

    async def _endpoint(self, request: HttpRequest) -> Mapping[str, Any]:
        faults = self.socket_faults
        if faults.endpoint_hangs:
            await asyncio.sleep(3600)
        if faults.endpoint_code:
            return {"code": faults.endpoint_code, "msg": "refused"}
        assert request.headers.get("locale") == "zh"
        body = json.loads(request.body)
        if body.get("AppID") != APP or body.get("AppSecret") != SECRET:
            return {"code": 514, "msg": "auth failed"}
        data = {"URL": faults.url or self.sockets.url, "ClientConfig": faults.config}
        return {"code": 0, "msg": "", "data": data}

    async def _send_resource(self, request: HttpRequest, writer: asyncio.StreamWriter) -> None:
        content = self.world.resources.get(request.path.rpartition("/")[2])
        if content is None or request.query.get("type") not in {"image", "file"}:
            body = {"code": 234003, "msg": "File not in msg."}
            writer.write(whole(400, body))
        elif isinstance(content, bytes):
            kind = {"content-type": "application/octet-stream"}
            writer.write(head(200, {**kind, "content-length": str(len(content))}) + content)
        else:
            # Without a length, so that a reader has to count.
            writer.write(head(200, {"content-type": "image/png", "connection": "close"}))
            for _ in range(content // len(CHUNK) + 1):
                writer.write(CHUNK)
                await writer.drain()
            writer.close()
        await writer.drain()


@asynccontextmanager
async def open_platform(
    clock: Clock, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[LarkPlatform]:
    """Run a platform in this loop; with `tls` its connections are encrypted."""
    platform = LarkPlatform(clock, tls)
    await platform.start(port)
    try:
        yield platform
    finally:
        with anyio.CancelScope(shield=True):
            await platform.stop()


def _refusal(error: Refused) -> Mapping[str, Any]:
    return {"code": error.code, "msg": str(error), "error": {"log_id": "2026"}}


async def _run(port: int) -> None:
    async with open_platform(SystemClock(), port=port) as platform:
        platform.world.enforces_rates = True
        print(f"url {platform.url}\napp {APP}\nsecret {SECRET}", flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            message = platform.world.say("oc_direct", line.strip())
            event = happenings.message(message, chat_type="p2p")
            await platform.sockets.deliver(event, message_id=f"frame-{message.id}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A fake of Feishu's platform")
    parser.add_argument("--port", type=int, default=0)
    anyio.run(_run, parser.parse_args().port)
