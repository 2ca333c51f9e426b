"""One streamed HTTP answer: sent, watched, read as fast as it comes, and closed the moment nobody wants it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import httpx

from agent_core.kernel import Clock
from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.providers.failures import failure_from_response, masked

ERROR_BODY_BYTES = 64 * 1024
ERROR_BODY_S = 10.0
WAITING_BYTES = 4 * 1024 * 1024
"""How much may wait for a reader that is slow; then the provider waits."""
CLOSE_S = 1.0
LAST_BYTES_S = 0.2
"""A whole answer's connection is kept for the next request if its end comes this soon."""
LOOK_S = 0.05
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """How long a provider may keep silent, in seconds."""

    connect_s: float = 30.0
    first_byte_s: float = 300.0
    idle_s: float = 30.0
    """Between two pieces of an answer; comments and pings are pieces too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request."""

    provider: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What must not show in any error."""


class HttpPool:
    """The connections of a process to its providers; made when first needed."""

    def __init__(self, *, clock: Clock, limits: StreamLimits | None = None) -> None:
        self.clock = clock
        self.limits = limits or StreamLimits()
        self._clients: dict[bool, httpx.AsyncClient] = {}
        self._making = anyio.Lock()

    async def aclose(self) -> None:
        """Close every connection."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.aclose()

    async def client_for(self, url: str) -> httpx.AsyncClient:
        """Give the client for an address. What runs on this machine is never asked through a proxy."""
        here = urlsplit(url).hostname in LOOPBACK
        found = self._clients.get(here)
        if found is not None:
            return found
        async with self._making:
            if here not in self._clients:
                # Reading the certificates takes tens of milliseconds of file reading.
                self._clients[here] = await anyio.to_thread.run_sync(
                    _make_client, here, self.limits
                )
            return self._clients[here]


class Body:
    """What has come of an answer's body and was not taken yet.

    A task of its own reads it, so that all that lies in the socket is taken at once: one decoding and one part
    for many small pieces, the more the slower its reader is.
    """

    def __init__(self, provider: str, limits: StreamLimits) -> None:
        self._provider = provider
        self._limits = limits
        self._chunks: list[bytes] = []
        self._waiting = 0
        self._came = anyio.Event()
        self._room = anyio.Event()
        self._failure: ProviderError | None = None
        self._last_at: float = 0.0
        self._any = False
        self.ended = anyio.Event()
        self.whole = False
        """Set by the reader when it has all it wants: then the connection may serve the next request."""

    async def take(self) -> bytes:
        """Wait for bytes and give all there are; empty at the end.

        Raises:
            ProviderError: The connection broke or fell silent; all that came before was given.
        """
        while not self._chunks:
            if self._failure is not None:
                raise self._failure
            if self.ended.is_set():
                return b""
            self._came = anyio.Event()
            await self._came.wait()
        whole = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._waiting = 0
        self._room.set()
        return whole

    async def fill(self, response: httpx.Response) -> None:
        """Read to the end."""
        # What was not compressed needs no decoder, which copies every piece twice.
        plain = "content-encoding" not in response.headers
        try:
            async for chunk in response.aiter_raw() if plain else response.aiter_bytes():
                if not chunk:
                    continue
                self._any = True
                self._last_at = anyio.current_time()
                if not self._chunks:
                    self._came.set()
                self._chunks.append(chunk)
                self._waiting += len(chunk)
                if self._waiting > WAITING_BYTES:
                    await self._wait_for_room()
        except httpx.HTTPError as error:
            self._fail(_broken(error, self._provider, before_first_byte=not self._any))
        self.ended.set()
        self._came.set()

    async def watch(self, *, started_at: float) -> None:
        """Fail an answer that falls silent."""
        self._last_at = started_at
        while not self.ended.is_set():
            limit_s = self._limits.idle_s if self._any else self._limits.first_byte_s
            left_s = self._last_at + limit_s - anyio.current_time()
            if left_s <= 0 and self._waiting <= WAITING_BYTES:
                self._fail(_silent(self._provider, limit_s, before_first_byte=not self._any))
                self._came.set()
                return
            # The limit changes with the first byte: look again before the longer one is over.
            await anyio.sleep(min(max(left_s, LOOK_S), self._limits.idle_s))

    def _fail(self, failure: ProviderError) -> None:
        if self._failure is None and not self.ended.is_set():
            self._failure = failure

    async def _wait_for_room(self) -> None:
        self._room = anyio.Event()
        await self._room.wait()
        self._last_at = anyio.current_time()


@asynccontextmanager
async def posted(pool: HttpPool, post: Post) -> AsyncGenerator[Body]:
    """Send a request and give the body of its answer; leaving closes the connection.

    A connection that fails before anything came is tried once more.

    Raises:
        ProviderError: The provider cannot be reached, keeps silent, or refuses.
    """
    started_at = anyio.current_time()
    response = await _send(pool, post)
    try:
        if response.status_code != HTTPStatus.OK:
            raise await _refused(pool, post, response)
        body = Body(post.provider, pool.limits)
        async with _read(body, response, started_at=started_at):
            yield body
    finally:
        if not response.is_closed:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await response.aclose()


@asynccontextmanager
async def _read(body: Body, response: httpx.Response, *, started_at: float) -> AsyncGenerator[None]:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body.fill, response)
        tasks.start_soon(partial(body.watch, started_at=started_at))
        try:
            yield
            if body.whole:
                with anyio.move_on_after(LAST_BYTES_S):
                    await body.ended.wait()
        except Exception as error:  # noqa: BLE001 - kept from the task group, which would wrap it; raised below
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _send(pool: HttpPool, post: Post) -> httpx.Response:
    client = await pool.client_for(post.url)
    for last_try in (False, True):
        try:
            with anyio.fail_after(pool.limits.first_byte_s):
                request = client.build_request(
                    "POST", post.url, headers=dict(post.headers), content=post.body
                )
                return await client.send(request, stream=True)
        except TimeoutError:
            raise _silent(post.provider, pool.limits.first_byte_s, before_first_byte=True) from None
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            # An idle connection that the provider has closed meanwhile is found out only by using it.
            if last_try:
                raise _broken(error, post.provider, before_first_byte=True) from error
        except httpx.HTTPError as error:
            raise _broken(error, post.provider, before_first_byte=True) from error
        except (httpx.InvalidURL, ValueError) as error:
            message = f"{post.provider}: its address or headers cannot be sent ({type(error).__name__}); see models.json"
            raise ProviderError(
                message, reason="invalid_request", provider=post.provider, before_first_byte=True
            ) from None
    raise AssertionError


async def _refused(pool: HttpPool, post: Post, response: httpx.Response) -> ProviderError:
    body = bytearray()
    try:
        with anyio.move_on_after(ERROR_BODY_S):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > ERROR_BODY_BYTES:
                    break
    except httpx.HTTPError:
        pass
    return failure_from_response(
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        body=bytes(body),
        provider=post.provider,
        now_ms=pool.clock.now_ms(),
        secrets=post.secrets,
    )


def _make_client(here: bool, limits: StreamLimits) -> httpx.AsyncClient:  # noqa: FBT001 - run_sync passes by position
    return httpx.AsyncClient(
        # Silence is timed by `Body.watch`, which knows the first byte from the rest.
        timeout=httpx.Timeout(None, connect=limits.connect_s),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=60),
        follow_redirects=False,
        trust_env=not here,
        headers={"accept-encoding": "identity", "user-agent": "tiller"},
    )


def _silent(provider: str, limit_s: float, *, before_first_byte: bool) -> ProviderError:
    message = f"{provider} sent nothing for {limit_s:g} s; try again, or raise stream.firstByteTimeoutS or stream.idleTimeoutS"
    return ProviderError(
        message, reason="timeout", provider=provider, before_first_byte=before_first_byte
    )


def _broken(error: httpx.HTTPError, provider: str, *, before_first_byte: bool) -> ProviderError:
    reason: ProviderErrorKind = "network"
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        reason, text = "timeout", "the connection was not made in time"
    elif isinstance(error, httpx.DecodingError):
        reason = "protocol"
    elif isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        # The text of these quotes what was to be sent, keys included.
        reason, text = "invalid_request", "its address or a header is malformed; see models.json"
    message = f"cannot reach {provider}: {text}" if before_first_byte else f"{provider}: {text}"
    return ProviderError(
        masked(message, ()), reason=reason, provider=provider, before_first_byte=before_first_byte
    )
