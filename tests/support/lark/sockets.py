"""The long connection of the fake platform."""

import base64
import json
import random
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import anyio
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from agent_core.kernel import Clock
from tests.support.lark.faults import SocketFaults
from tiller_server.channels.lark.connection.frames import (
    CONTROL,
    DATA,
    Frame,
    decode_frame,
    encode_frame,
)

RESEND_S = 3.0
SERVICE = 33554678


@dataclass(frozen=True, kw_only=True)
class Ack:
    """An acknowledgement."""

    message_id: str
    code: int
    data: Any
    headers: Mapping[str, str]


class Sockets:
    """The server of connections: pings, pushes, acknowledgements."""

    def __init__(
        self, clock: Clock, faults: SocketFaults, tls: ssl.SSLContext | None = None
    ) -> None:
        self.tls = tls
        self.clock = clock
        self.faults = faults
        self.connections: list[ServerConnection] = []
        self.acks: list[Ack] = []
        self.pings = 0
        self.opened = 0
        self._changed = anyio.Event()
        self._server: Server | None = None
        self._stopping = anyio.Event()

    async def start(self) -> None:
        self._server = await serve(
            self._serve, "127.0.0.1", 0, process_request=self._admit, ping_interval=None,
            close_timeout=1, ssl=self.tls,
        )  # fmt: skip

    async def stop(self) -> None:
        self._stopping.set()
        for connection in tuple(self.connections):
            connection.transport.abort()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        port = next(iter(self._server.sockets)).getsockname()[1]
        host = "ws://127.0.0.1" if self.tls is None else "wss://localhost"
        return f"{host}:{port}/ws/v2?device_id=d1&service_id={SERVICE}&access_key=k"

    async def push(
        self,
        event: Mapping[str, Any],
        *,
        message_id: str,
        parts: int = 1,
        order: Sequence[int] | None = None,
        kind: str = "event",
    ) -> None:
        """Send an event on one connection, at random; in parts, of which `order` names those that are sent."""
        connection = random.choice(self.connections)  # noqa: S311 - as the platform does
        for frame in split(event, message_id=message_id, parts=parts, order=order, kind=kind):
            await connection.send(encode_frame(frame))

    async def deliver(self, event: Mapping[str, Any], *, message_id: str, tries: int = 5) -> Ack:
        """Send an event until it is acknowledged with 200."""
        for _ in range(tries):
            before = len(self.acks)
            await self.until(lambda: bool(self.connections))
            with suppress(ConnectionClosed):  # its process was killed: another one gets the event
                await self.push(event, message_id=message_id)
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_late, group.cancel_scope)
                await self.until(lambda n=before: self._acked(message_id, n))
                group.cancel_scope.cancel()
            acks = [ack for ack in self.acks[before:] if ack.message_id == message_id]
            if acks and acks[0].code == HTTPStatus.OK:
                return acks[0]
        raise AssertionError(f"{message_id} was not acknowledged")

    async def until(self, condition: Any) -> None:
        """Wait until a condition holds; it is looked at with each change of the connections."""
        while not condition():
            await self._changed.wait()

    async def reset(self) -> None:
        """Break all connections without a close frame."""
        for connection in tuple(self.connections):
            raw = connection.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.transport.abort()

    async def close(self, code: int) -> None:
        """Close all connections."""
        for connection in tuple(self.connections):
            await connection.close(code)

    def _acked(self, message_id: str, before: int) -> bool:
        return any(ack.message_id == message_id for ack in self.acks[before:])

    async def _cancel_late(self, scope: anyio.CancelScope) -> None:
        await self.clock.sleep(RESEND_S)
        scope.cancel()

    def _note(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if self.faults.handshake_hangs:
            self.faults.handshake_hangs -= 1
            await self._stopping.wait()
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "stopped\n")
        if self.faults.handshake is None:
            return None
        status, code = self.faults.handshake
        headers = Headers(
            {
                "handshake-status": str(status),
                "handshake-msg": "refused",
                "handshake-autherrcode": str(code),
                "content-length": "0",
                "connection": "close",
            }
        )
        return Response(400, "Bad Request", headers)

    async def _serve(self, connection: ServerConnection) -> None:
        self.opened += 1
        self._note()
        if self.faults.closes_at_once:
            await connection.close(1011)
            return
        self.connections.append(connection)
        self._note()
        try:
            async for raw in connection:
                assert isinstance(raw, bytes)
                await self._receive(connection, decode_frame(raw))
                self._note()
        except ConnectionClosed:
            pass
        finally:
            self.connections.remove(connection)
            self._note()

    async def _receive(self, connection: ServerConnection, frame: Frame) -> None:
        if frame.method == CONTROL:
            assert frame.service == SERVICE
            self.pings += 1
            if not self.faults.is_silent:
                config = self.faults.pong_config
                payload = json.dumps(config).encode() if config is not None else b""
                pong = Frame(
                    service=SERVICE, method=CONTROL, headers=(("type", "pong"),), payload=payload
                )
                await connection.send(encode_frame(pong))
            return
        body = json.loads(frame.payload)
        data = body.get("data")
        self.acks.append(
            Ack(
                message_id=frame.header("message_id"),
                code=body["code"],
                data=json.loads(base64.b64decode(data)) if data else None,
                headers=dict(frame.headers),
            )
        )


def split(
    event: Mapping[str, Any],
    *,
    message_id: str,
    parts: int = 1,
    order: Sequence[int] | None = None,
    kind: str = "event",
) -> list[Frame]:
    """Return the frames of an event."""
    raw = json.dumps(event, ensure_ascii=False).encode()
    size = -(-len(raw) // parts)
    return [
        Frame(
            sequence=index,
            log_id=7,
            service=SERVICE,
            method=DATA,
            headers=(
                ("type", kind),
                ("message_id", message_id),
                ("trace_id", f"trace-{message_id}"),
                ("sum", str(parts)),
                ("seq", str(index)),
            ),
            payload=raw[index * size : (index + 1) * size],
        )
        for index in (range(parts) if order is None else order)
    ]
