"""The long connection: events in, acknowledgements out. Every wait has a limit, and no refusal ends it."""

import base64
import random
import ssl
from collections.abc import Callable
from typing import Final, Literal, Protocol

import anyio
import anyio.to_thread
import httpx
from anyio.abc import TaskGroup
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException

from agent_core.channels.messaging.port import ConnectionState
from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue, encode
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.account import LarkAccount, is_loopback
from tiller_server.channels.lark.api.deadline import within
from tiller_server.channels.lark.api.json_fields import parse_object
from tiller_server.channels.lark.connection.endpoint import (
    ConnectionConfig,
    ConnectionFailed,
    SocketEndpoint,
    handshake_refused,
    request_endpoint,
)
from tiller_server.channels.lark.connection.frames import (
    CONTROL,
    FRAME_BYTES,
    Frame,
    FrameInvalid,
    ack_frame,
    decode_frame,
    encode_frame,
    ping_frame,
)
from tiller_server.channels.lark.connection.parts import PartJoiner

HANDSHAKE_S: Final = 10.0
SEND_S: Final = 10.0
PONG_EXTRA_S: Final = 10.0
PERSON_WAIT_S: Final = 300.0
"""Wait after a refusal that lasts until a person changes something."""
FIRST_BACKOFF_S: Final = 5.0
DEGRADED_AFTER: Final = 3
"""Failed attempts in a row after which the connection counts as degraded."""
HANDLERS: Final = 64
"""Callbacks that are answered at once; the next ones wait."""

EventKind = Literal["stored", "unknown", "damaged", "failed"]


class EventReply(Value, frozen=True, kw_only=True):
    """The outcome of an event."""

    kind: EventKind = "stored"
    """`failed` is repeated by the platform; the others are not."""
    answer: JsonObject | None = None
    """Answer to a callback."""


class EventHandler(Protocol):
    """Receiver of the events of a connection."""

    def is_callback(self, payload: JsonObject) -> bool:
        """Return whether an event is answered with more than an acknowledgement; those are handled side by side."""
        ...

    async def handle(self, payload: JsonObject) -> EventReply:
        """Store or answer an event. Never raises."""
        ...

    async def prepare(self) -> None:
        """Load the data that handling needs, before a connection is opened.

        Raises:
            ConnectionFailed: It is not available.
        """
        ...

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        """Record the state of the connection."""
        ...


class LongConnection:
    """The connection of one app, which is opened again whenever it ends.

    Attributes:
        config: Intervals in force.
        counts: Number of events by outcome, of pongs (`pong`), and of bytes that were no frame (`invalid`).
    """

    def __init__(
        self,
        account: LarkAccount,
        client: httpx.AsyncClient,
        clock: Clock,
        *,
        jitter: Callable[[], float] = random.random,  # noqa: S311 - spreads attempts, guards nothing
    ) -> None:
        self._account = account
        self._client = client
        self._clock = clock
        self._jitter = jitter
        self.config = ConnectionConfig()
        self._failures = 0
        self._is_degraded = False
        self._parts = PartJoiner(clock)
        self._callbacks = anyio.Semaphore(HANDLERS)
        self._pong_s = 0.0
        self._tls: ssl.SSLContext | None = None
        self.counts: dict[str, int] = {}

    async def run(self, handler: EventHandler) -> None:
        """Keep the connection until it is cancelled."""
        try:
            while True:
                if not self._is_degraded:
                    handler.connection_changed("connecting")
                try:
                    await handler.prepare()
                    endpoint = await request_endpoint(
                        self._client, self._account, self.config, self._clock
                    )
                    self.config = endpoint.config
                    await self._serve(endpoint, handler)
                except ConnectionFailed as error:
                    await self._wait(error, handler)
        finally:
            handler.connection_changed("stopped")

    async def _wait(self, error: ConnectionFailed, handler: EventHandler) -> None:
        self._is_degraded = error.needs_person or self._failures >= DEGRADED_AFTER
        state = "degraded" if self._is_degraded else "connecting"
        handler.connection_changed(state, str(error))
        wait_s = PERSON_WAIT_S if error.needs_person else self._backoff_s()
        self._failures += 1
        await self._clock.sleep(wait_s)

    def _backoff_s(self) -> float:
        if self._failures == 0:
            return self._jitter() * self.config.first_wait_s
        grown_s = FIRST_BACKOFF_S * 2 ** min(self._failures - 1, 10)
        return min(grown_s, self.config.reconnect_s) * (0.75 + self._jitter() / 4)

    async def _serve(self, endpoint: SocketEndpoint, handler: EventHandler) -> None:
        """Serve one connection until it ends.

        Raises:
            ConnectionFailed: Always, with the reason.
        """
        connection = await self._open(endpoint)
        reasons: list[BaseException] = []
        try:
            self._is_degraded = False
            handler.connection_changed("connected")
            self._pong_s = self._clock.monotonic_s()
            async with anyio.create_task_group() as group:
                group.start_soon(self._ping, connection, endpoint.service)
                group.start_soon(self._watch)
                group.start_soon(self._read, connection, handler, group)
        except* ConnectionFailed as failures:
            reasons += failures.exceptions
        finally:
            # A peer that is silent does not answer the closing handshake either.
            connection.transport.abort()
        raise reasons[0]

    async def _open(self, endpoint: SocketEndpoint) -> ClientConnection:
        proxy = None if is_loopback(endpoint.url) else True
        tls = await self._load_certificates() if endpoint.url.startswith("wss:") else None

        async def open_socket() -> ClientConnection:
            return await connect(
                endpoint.url,
                proxy=proxy,
                ssl=tls,
                open_timeout=None,
                ping_interval=None,  # the protocol has pings of its own
                close_timeout=1,
                max_size=FRAME_BYTES,
            )

        try:
            return await within(self._clock, HANDSHAKE_S, open_socket)
        except InvalidStatus as error:
            headers = {name.lower(): value for name, value in error.response.headers.raw_items()}
            raise handshake_refused(headers, error.response.status_code) from error
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            # The address holds a ticket of the connection, and the text of this error has the address.
            is_address = isinstance(error, InvalidURI)
            reason = "not an address of a WebSocket" if is_address else str(error)
            message = f"The connection to Lark could not be opened ({reason}); it is tried again"
            raise ConnectionFailed(message) from error

    async def _load_certificates(self) -> ssl.SSLContext:
        """Return the certificates that the REST API is checked with; they are read from the disk once."""
        if self._tls is None:
            self._tls = await anyio.to_thread.run_sync(httpx.create_ssl_context)
        return self._tls

    async def _ping(self, connection: ClientConnection, service: int) -> None:
        while True:
            await self._send(connection, ping_frame(service))
            await self._clock.sleep(self.config.ping_s)

    async def _watch(self) -> None:
        """Raise when the last pong is too long ago."""
        while True:
            limit_s = 2 * self.config.ping_s + PONG_EXTRA_S
            left_s = self._pong_s + limit_s - self._clock.monotonic_s()
            if left_s <= 0:
                msg = f"Lark did not answer a ping for {limit_s:.0f} s; the connection is opened again"
                raise ConnectionFailed(msg)
            await self._clock.sleep(left_s)

    async def _read(
        self, connection: ClientConnection, handler: EventHandler, group: TaskGroup
    ) -> None:
        while True:
            try:
                frame = decode_frame(await connection.recv(decode=False))
            except ConnectionClosed as error:
                message = f"The connection to Lark has ended ({error}); it is opened again"
                raise ConnectionFailed(message) from error
            except FrameInvalid:
                self._count("invalid")
                continue
            if frame.method == CONTROL:
                self._control(frame)
            else:
                await self._receive(connection, frame, handler, group)

    def _control(self, frame: Frame) -> None:
        if frame.header("type") != "pong":
            return
        self._count("pong")
        self._pong_s = self._clock.monotonic_s()
        # Only now: a platform that accepts and closes at once is not asked without a pause.
        self._failures = 0
        if frame.payload:
            self.config = self.config.updated(parse_object(frame.payload))

    async def _receive(
        self, connection: ClientConnection, frame: Frame, handler: EventHandler, group: TaskGroup
    ) -> None:
        try:
            total, index = int(frame.header("sum") or 1), int(frame.header("seq") or 0)
        except ValueError:
            total, index = 0, 0
        key = frame.header("message_id")
        payload = self._parts.add(key, total=total, index=index, payload=frame.payload)
        if payload is None:
            return
        event = parse_object(payload)
        is_event = frame.header("type") == "event"
        if not is_event or not event:
            reply = EventReply(kind="damaged" if is_event else "unknown")
            await self._acknowledge(connection, frame, reply, 0)
        elif handler.is_callback(event):
            await self._callbacks.acquire()
            group.start_soon(self._call_back, connection, frame, handler, event)
        else:
            await self._handle(connection, frame, handler, event)

    async def _call_back(
        self, connection: ClientConnection, frame: Frame, handler: EventHandler, event: JsonObject
    ) -> None:
        try:
            await self._handle(connection, frame, handler, event)
        finally:
            self._callbacks.release()

    async def _handle(
        self, connection: ClientConnection, frame: Frame, handler: EventHandler, event: JsonObject
    ) -> None:
        since_s = self._clock.monotonic_s()
        reply = await handler.handle(event)
        duration_ms = round((self._clock.monotonic_s() - since_s) * 1000)
        await self._acknowledge(connection, frame, reply, duration_ms)

    async def _acknowledge(
        self, connection: ClientConnection, frame: Frame, reply: EventReply, duration_ms: int
    ) -> None:
        self._count(reply.kind)
        body: dict[str, JsonValue] = {"code": 500 if reply.kind == "failed" else 200}
        if reply.answer is not None:
            body["data"] = base64.b64encode(encode(reply.answer)).decode()
        ack = ack_frame(frame, payload=encode(body), duration_ms=duration_ms)
        await self._send(connection, ack)

    async def _send(self, connection: ClientConnection, frame: Frame) -> None:
        data = encode_frame(frame)
        try:
            await within(self._clock, SEND_S, lambda: connection.send(data))
        except (ConnectionClosed, TimeoutError) as error:
            message = f"The connection to Lark does not accept data ({error}); it is opened again"
            raise ConnectionFailed(message) from error

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
