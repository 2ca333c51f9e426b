"""The HTTP client on httpx, and its transport that hands over whole chunks."""

import re
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from enum import Enum, auto
from http import HTTPStatus
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpcore
import httpx
from h2.events import ConnectionTerminated, StreamReset
from h2.exceptions import H2Error
from typing_extensions import override

from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.providers.http.errors import masked, origin_of, unreachable
from agent_core.providers.http.request import HttpRequest

CRLF = b"\r\n"
HEAD_END = b"\r\n\r\n"
HEAD_BYTES = 64 * 1024
"""A longer head is passed on as it is."""
SIZE_LINE_BYTES = 32
"""A longer line is not the size of a chunk."""

_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*\r\n")
_INFORMATIONAL = re.compile(rb"HTTP/1\.[0-9] 1")


class _Place(Enum):
    HEAD = auto()
    CHUNKS = auto()
    REST = auto()
    """All further bytes are passed on unchanged."""


class ChunkJoiner:
    """Rewrites the chunks of a response body (RFC 9112, section 7.1): those of one piece become one.

    h11 takes 14 microseconds for a chunk, this one. No byte of the body is held back, whole chunk or not. Any
    other form of the coding is passed on unchanged, and h11 judges it.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Expect the head of a response: a request is being sent."""
        self._place = _Place.HEAD
        self._held = b""
        """All of an incomplete head; later the beginning of a size line, or half of a line end."""
        self._missing: int | None = None
        """Bytes that the open chunk lacks; 0: its line end. None: a size line follows."""

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes that stand for the next ones; none if nothing of the body has come."""
        match self._place:
            case _Place.REST:
                return piece
            case _Place.HEAD:
                return self._in_head(piece)
            case _Place.CHUNKS:
                return self._in_chunks(self._held + piece)

    def flush(self) -> bytes:
        """Return what was held back when the connection ended."""
        held = b"" if self._place is _Place.HEAD else self._held
        self._held = b""
        return held

    def _in_head(self, piece: bytes) -> bytes:
        head = self._held + piece
        end = head.find(HEAD_END)
        while end >= 0 and _INFORMATIONAL.match(head):
            head = head[end + len(HEAD_END) :]
            end = head.find(HEAD_END)
        if end < 0 and len(head) <= HEAD_BYTES:
            self._held = head
            return piece
        self._held = b""
        if end < 0 or _CHUNKED.search(head, 0, end + len(CRLF)) is None:
            self._place = _Place.REST
            return piece
        self._place = _Place.CHUNKS
        body = head[end + len(HEAD_END) :]
        return piece[: len(piece) - len(body)] + self._in_chunks(body)

    def _in_chunks(self, raw: bytes) -> bytes:
        joined: list[bytes] = []
        at, end, missing = 0, len(raw), self._missing
        if missing is None:
            at = _whole_chunks(raw, joined)
        while at < end:
            if missing is None:
                line = _SIZE_LINE.match(raw, at)
                missing = int(line[1], 16) if line is not None else 0
                if line is None and end - at <= SIZE_LINE_BYTES and b"\n" not in raw[at:]:
                    missing = None
                    break
                if line is None or missing == 0:
                    return self._pass_on(joined, raw[at:])
                at = line.end()
            joined.append(raw[at : at + missing])
            missing -= len(joined[-1])
            at += len(joined[-1])
            if missing or end - at < len(CRLF):
                break
            if not raw.startswith(CRLF, at):
                # An empty size line, which h11 refuses as it would have refused this.
                return self._pass_on(joined, CRLF + raw[at:])
            at += len(CRLF)
            missing = None
        self._held, self._missing = raw[at:], missing
        return _chunk(joined)

    def _pass_on(self, joined: list[bytes], rest: bytes) -> bytes:
        self._place = _Place.REST
        self._held = b""
        return _chunk(joined) + rest


def _whole_chunks(raw: bytes, joined: list[bytes]) -> int:
    """Append the bodies of the whole chunks that come first, and return where they end."""
    at = 0
    while (line := _SIZE_LINE.match(raw, at)) is not None:
        start = line.end()
        end = start + int(line[1], 16)
        if end == start or not raw.startswith(CRLF, end):
            break
        joined.append(raw[start:end])
        at = end + len(CRLF)
    return at


def _chunk(pieces: list[bytes]) -> bytes:
    body = b"".join(pieces)
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


class ChunkedTransport(httpx.AsyncHTTPTransport):
    """The transport of httpx, with chunks joined before h11 reads them."""

    def __init__(self, *, verify: ssl.SSLContext, limits: httpx.Limits) -> None:
        super().__init__(verify=verify, http2=True, limits=limits)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            http2=True,
            network_backend=_JoiningBackend(),
        )


class _JoiningBackend(httpcore.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._network: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue] - httpcore has another class of this name for when anyio is missing

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _JoiningStream(
            await self._network.connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _JoiningStream(httpcore.AsyncNetworkStream):
    """A connection that speaks HTTP/1.1, or is about to agree on a protocol."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._chunks = ChunkJoiner()

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while piece := await self._stream.read(max_bytes, timeout):
            joined = self._chunks.feed(piece)
            if joined:
                return joined
        return self._chunks.flush()

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._chunks.begin()
        await self._stream.write(buffer, timeout)

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()

    @override
    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        encrypted: ssl.SSLObject | None = stream.get_extra_info("ssl_object")  # pyright: ignore[reportAny] - as httpcore declares it
        if encrypted is not None and encrypted.selected_alpn_protocol() == "h2":
            return stream
        return _JoiningStream(stream)

    @override
    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)  # pyright: ignore[reportAny] - as httpcore declares it


POOLED = 8
POOLED_S = 60.0
CLOSE_S = 1.0


class HttpxResponse:
    """An answer whose body is still on its way."""

    def __init__(
        self,
        response: httpx.Response,
        provider: str,
        *,
        keep: Callable[[], Awaitable[None]],
        drop: Callable[[], Awaitable[None]],
    ) -> None:
        self._response = response
        self._provider = provider
        self._keep = keep
        self._drop = drop
        self.status = response.status_code
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self.is_closed = False
        """Whether the connection was returned to the pool or closed."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Return the body as it comes.

        Raises:
            ProviderError: The connection broke, or the body is damaged.
        """
        response = self._response
        # What was not compressed needs no decoder, which copies every piece twice.
        plain = self.status == HTTPStatus.OK and "content-encoding" not in self.headers
        try:
            async for chunk in response.aiter_raw() if plain else response.aiter_bytes():
                if chunk:
                    yield chunk
        except httpx.HTTPError as error:
            raise _broken(error, self._provider) from error
        except H2Error as error:
            raise _against_http2(error, self._provider) from error
        self.is_closed = True
        await self._keep()

    async def aclose(self) -> None:
        """Close the connection, if the body was not read to its end."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            await self._response.aclose()
        finally:
            await self._drop()


class Idle(Value, frozen=True, kw_only=True):
    """A client with a connection that nobody uses."""

    client: httpx.AsyncClient
    since_s: float


class HttpxClient:
    """Keeps connections and sends requests over them.

    A client serves one request at a time, so a connection does too, also in HTTP/2: httpcore 1.0 tells a provider
    nothing when an answer is left (no RST_STREAM), never returns that answer's flow control, and a write that is
    cancelled breaks every answer beside it. Closing the connection ends all of that and harms nobody else.
    """

    def __init__(self, *, direct: bool, connect_s: float) -> None:
        self._direct = direct
        self._connect_s = connect_s
        # Read once: it takes twenty milliseconds. What is trusted does not depend on the way there.
        self._trusted = httpx.create_ssl_context()
        # The first client imports the rest of httpx: here, where whoever makes an exchange has a thread for it.
        self._idle = [Idle(client=self._new_client(), since_s=time.monotonic())]
        self._in_use: set[httpx.AsyncClient] = set()

    async def send(self, post: HttpRequest) -> HttpxResponse:
        """Send a request and give the answer as soon as its headers are there.

        Raises:
            ProviderError: It could not be sent, or the connection broke before an answer.
        """
        await self._close_idle(before_s=time.monotonic() - POOLED_S)
        client = self._idle.pop().client if self._idle else self._new_client()
        self._in_use.add(client)
        try:
            response = await self._sent(client, post)
        except ProviderError:
            await self._drop(client)
            # In HTTP/2 a connection that the provider has closed meanwhile shows only when it is used, and those
            # that waited beside it were closed with it: the next try must not meet another of them.
            await self._close_idle(before_s=time.monotonic())
            raise
        except BaseException:
            await self._drop(client)
            raise

        async def keep() -> None:
            await self._keep(client)

        async def drop() -> None:
            await self._drop(client)

        return HttpxResponse(response, post.provider, keep=keep, drop=drop)

    async def aclose(self) -> None:
        """Close every connection."""
        for client in tuple(self._in_use):
            await self._drop(client)
        await self._close_idle(before_s=time.monotonic())

    def _new_client(self) -> httpx.AsyncClient:
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=POOLED, keepalive_expiry=POOLED_S
        )
        # With a transport of its own, httpx uses no proxy of the environment.
        is_direct = self._direct or not getproxies()
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=self._connect_s),
            limits=limits,
            transport=ChunkedTransport(verify=self._trusted, limits=limits) if is_direct else None,
            follow_redirects=False,
            trust_env=not self._direct,
            verify=self._trusted,
            http2=True,  # decision 0014
            headers={"accept-encoding": "identity", "user-agent": "tiller"},
        )

    async def _sent(self, client: httpx.AsyncClient, post: HttpRequest) -> httpx.Response:
        try:
            request = client.build_request(
                "POST", post.url, headers=dict(post.headers), content=post.body
            )
            return await client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise self._unsent(error, post) from None
        except H2Error as error:
            raise _against_http2(error, post.provider) from None
        except (httpx.InvalidURL, ValueError):
            raise _malformed(post.provider) from None

    async def _keep(self, client: httpx.AsyncClient) -> None:
        if client not in self._in_use:
            return
        if len(self._idle) >= POOLED:
            await self._drop(client)
            return
        self._in_use.discard(client)
        self._idle.append(Idle(client=client, since_s=time.monotonic()))

    async def _drop(self, client: httpx.AsyncClient) -> None:
        self._in_use.discard(client)
        with anyio.move_on_after(CLOSE_S, shield=True):
            await client.aclose()

    async def _close_idle(self, *, before_s: float) -> None:
        old = [idle for idle in self._idle if idle.since_s <= before_s]
        self._idle = [idle for idle in self._idle if idle.since_s > before_s]
        for idle in old:
            await self._drop(idle.client)

    def _unsent(self, error: httpx.HTTPError, post: HttpRequest) -> ProviderError:
        provider = post.provider
        inner = _of_http2(error)
        if isinstance(inner, H2Error):
            return _against_http2(inner, provider)
        if isinstance(inner, ConnectionTerminated | StreamReset):
            message = f"cannot reach {provider}: {_said(inner)} before the answer; try again"
            return ProviderError(message, reason="network", provider=provider)
        if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
            # The text of these quotes what was to be sent, keys included.
            return _malformed(provider)
        if isinstance(error, httpx.TimeoutException):
            message = (
                f"cannot reach {provider}: the connection to {origin_of(post.url)} was not made in time "
                f"({self._connect_s:g} s); check baseUrl and the network connection"
            )
            return ProviderError(message, reason="timeout", provider=provider)
        proxy = None if self._direct else _proxy_for(post.url)
        message = unreachable(error, provider=provider, url=post.url, proxy=proxy)
        return ProviderError(masked(message, post.secrets), reason="network", provider=provider)


def _broken(error: httpx.HTTPError, provider: str) -> ProviderError:
    if isinstance(error, httpx.DecodingError):
        message = f"{provider} sent an answer whose compression is damaged; try again"
        return ProviderError(message, reason="protocol", provider=provider)
    inner = _of_http2(error)
    if isinstance(inner, H2Error):
        return _against_http2(inner, provider)
    ended = isinstance(inner, ConnectionTerminated | StreamReset)
    why = _said(inner) if ended else str(error) or type(error).__name__
    message = f"{provider}: the connection broke in the middle of the answer ({why}); try again"
    return ProviderError(message, reason="network", provider=provider)


def _of_http2(error: httpx.HTTPError) -> object:
    """Return the event or error of HTTP/2 behind an error; httpcore keeps it as its first argument."""
    cause = error.__cause__
    return cause.args[0] if cause is not None and cause.args else None


def _said(event: ConnectionTerminated | StreamReset) -> str:
    code = event.error_code
    name = getattr(code, "name", None) or str(code)
    what = "the connection" if isinstance(event, ConnectionTerminated) else "the answer's stream"
    return f"the provider ended {what} with {name}"


def _against_http2(error: H2Error, provider: str) -> ProviderError:
    # Its text may quote a header, keys included.
    message = (
        f"{provider}: the HTTP/2 connection failed ({type(error).__name__}); try again, and check the headers "
        "in models.json"
    )
    return ProviderError(message, reason="protocol", provider=provider)


def _proxy_for(url: str) -> str | None:
    """Name the proxy that a request goes through: its address without what opens it, and the variable."""
    parts = urlsplit(url)
    proxies = getproxies()
    name = parts.scheme if parts.scheme in proxies else "all"
    if name not in proxies or proxy_bypass(parts.hostname or ""):
        return None
    address = proxies[name] if "://" in proxies[name] else f"http://{proxies[name]}"
    return f"{origin_of(address)} ({name.upper()}_PROXY)"


def _malformed(provider: str) -> ProviderError:
    message = f"{provider} cannot be asked: its baseUrl or a header is malformed; see models.json"
    return ProviderError(message, reason="invalid_request", provider=provider)
