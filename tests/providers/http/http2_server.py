"""A provider inside the test that speaks HTTP/2 over TLS, and HTTP/1.1 to whom it does not offer it."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.tls import TLSAttribute, TLSListener, TLSStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError

Script = Callable[["Exchange"], Awaitable[None]]
"""Answers one request."""
LEFT = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class Exchange:
    """One request on one stream, and the ways to answer it."""

    connection: int
    stream_id: int
    headers: dict[str, str]
    state: H2Connection
    stream: TLSStream
    body: bytes = b""
    may_say_more: anyio.Event = field(default_factory=anyio.Event)

    async def start(self, *, status: int = 200) -> None:
        headers = [(":status", str(status)), ("content-type", "text/event-stream")]
        self.state.send_headers(self.stream_id, headers)
        await self.flush()

    async def say(self, data: bytes) -> None:
        """Send one frame; wait while the client's window is too small for it."""
        while self.state.local_flow_control_window(self.stream_id) < len(data):
            self.may_say_more = anyio.Event()
            await self.may_say_more.wait()
        self.state.send_data(self.stream_id, data)
        await self.flush()

    async def end(self) -> None:
        self.state.end_stream(self.stream_id)
        await self.flush()

    async def reset(self) -> None:
        self.state.reset_stream(self.stream_id, ErrorCodes.INTERNAL_ERROR)
        await self.flush()

    async def go_away(self) -> None:
        self.state.close_connection(last_stream_id=self.stream_id)
        await self.flush()

    async def break_off(self) -> None:
        """Drop the connection without a word of HTTP/2."""
        await self.stream.aclose()

    async def break_the_rules(self) -> None:
        """Send data on a stream that only a server could have opened, and never did."""
        await self.stream.send(b"\x00\x00\x01\x00\x00\x00\x00\x00\x02x")

    async def flush(self) -> None:
        await self.stream.send(self.state.data_to_send())


@dataclass
class Http2Server:
    """What the test sees of the server."""

    url: str
    scripts: list[Script]
    asked: list[Exchange] = field(default_factory=list)
    protocols: list[str | None] = field(default_factory=list)
    """What was agreed upon with each connection, in ALPN's words."""
    was_asked: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when a client resets a stream or closes a connection."""
    open: set[TLSStream] = field(default_factory=set)

    async def serve(self, stream: TLSStream) -> None:
        agreed = stream.extra(TLSAttribute.alpn_protocol, None)  # noqa: S610 - not Django
        self.protocols.append(agreed)
        self.open.add(stream)
        try:
            async with stream:
                if agreed == "h2":
                    await self._serve_http2(stream, len(self.protocols))
                else:
                    await _serve_http1(stream)
        except LEFT:
            self.left.set()
        finally:
            self.open.discard(stream)

    async def drop_all(self) -> None:
        """Close every connection, as a server does with idle ones."""
        for stream in tuple(self.open):
            await stream.aclose()

    async def _serve_http2(self, stream: TLSStream, number: int) -> None:
        state = H2Connection(config=H2Configuration(client_side=False, header_encoding="utf-8"))
        state.initiate_connection()
        await stream.send(state.data_to_send())
        under_way: dict[int, Exchange] = {}
        async with anyio.create_task_group() as tasks:
            with suppress(ProtocolError, *LEFT):
                while True:
                    for event in state.receive_data(await stream.receive()):
                        if isinstance(event, RequestReceived):
                            headers = {str(k): str(v) for k, v in event.headers or ()}
                            under_way[event.stream_id] = Exchange(
                                number, event.stream_id, headers, state, stream
                            )
                        elif isinstance(event, DataReceived):
                            under_way[event.stream_id].body += event.data or b""
                            state.acknowledge_received_data(
                                event.flow_controlled_length or 0, event.stream_id
                            )
                        elif isinstance(event, StreamEnded):
                            tasks.start_soon(self._answer, under_way[event.stream_id])
                        elif isinstance(event, WindowUpdated):
                            for exchange in under_way.values():
                                exchange.may_say_more.set()
                        elif isinstance(event, StreamReset):
                            self.left.set()
                    await stream.send(state.data_to_send())
            self.left.set()
            tasks.cancel_scope.cancel()

    async def _answer(self, exchange: Exchange) -> None:
        self.asked.append(exchange)
        self.was_asked.set()
        with suppress(ProtocolError, *LEFT):
            await self.scripts.pop(0)(exchange)


@asynccontextmanager
async def http2_server(
    folder: Path, *scripts: Script, offers: tuple[str, ...] = ("h2", "http/1.1")
) -> AsyncGenerator[Http2Server]:
    """Serve the scripts, one for each request, with the certificate of a folder.

    Args:
        folder: Where `write_certificate` wrote it.
        offers: What the server speaks, in ALPN's words.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    context.set_alpn_protocols(list(offers))
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as plain:
        port = plain.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django
        server = Http2Server(url=f"https://127.0.0.1:{port}", scripts=list(scripts))
        listener = TLSListener(plain, context, standard_compatible=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.serve)
            yield server
            tasks.cancel_scope.cancel()


def write_certificate(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1 that signs itself, and its key; gives the certificate's path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2120, 1, 1, tzinfo=dt.UTC))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    path = folder / "certificate.pem"
    path.write_bytes(certificate.public_bytes(pem))
    return path


async def _serve_http1(stream: TLSStream) -> None:
    """Answer every request with the same few words."""
    while True:
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += await stream.receive()
        head, _, body = raw.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        while len(body) < length:
            body += await stream.receive()
        answer = (
            b'data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n'
            b"data: [DONE]\n\n"
        )
        await stream.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: "
            b"%d\r\n\r\n%s" % (len(answer), answer)
        )
