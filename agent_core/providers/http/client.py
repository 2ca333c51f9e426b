"""One streamed HTTP answer: sent, watched, read as fast as it comes, and closed the moment nobody wants it."""

import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from agent_core.hooks import Hooks, NoHooks
from agent_core.kernel import Clock
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.providers.http.errors import failure_from_response
from agent_core.providers.http.hooks import changed_by_hooks, tell_response
from agent_core.providers.http.request import HttpRequest

ERROR_BODY_BYTES = 64 * 1024
ERROR_BODY_S = 10.0
TAKEN_BYTES = 65_536
"""Most bytes taken at once, unless one chunk is larger; other tasks wait while they are processed."""
WAITING_BYTES = 4 * 1024 * 1024
"""How much may wait for a reader that is slow; then the provider waits."""
CLOSE_S = 1.0
LAST_BYTES_S = 0.2
"""A whole answer's connection is kept for the next request if its end comes this soon."""
LOOK_S = 0.05
COMMAND_LINE = "httpx._main"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class StreamTimeouts(Value, frozen=True, kw_only=True):
    """How long a provider may keep silent, in seconds."""

    connect_s: float = 30.0
    first_byte_s: float = 300.0
    idle_s: float = 30.0
    """Between two pieces of an answer; comments and pings are pieces too."""


class HttpResponse(Protocol):
    """An answer whose body is still on its way."""

    status: int
    headers: Mapping[str, str]

    @property
    def is_closed(self) -> bool:
        """Return whether the connection was given back or closed."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Return the body as it comes; a `ProviderError` when the connection breaks."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class HttpClient(Protocol):
    """Sends requests."""

    async def send(self, post: HttpRequest) -> HttpResponse:
        """Send one and give the answer as soon as its headers are there; a `ProviderError` when it cannot."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


class HttpPool:
    """The connections of a process to its providers; made when first needed."""

    def __init__(self, *, clock: Clock, limits: StreamTimeouts | None = None) -> None:
        self.clock = clock
        self.limits = limits or StreamTimeouts()
        self.hooks: Hooks = NoHooks()
        """Asked about what is sent through this pool; set by whoever builds the session."""
        self._clients: dict[bool, HttpClient] = {}
        self._making = anyio.Lock()

    def sharing(self, limits: StreamTimeouts) -> "HttpPool":
        """Return the same connections with other limits; only this pool is to be closed."""
        shared = HttpPool(clock=self.clock, limits=limits)
        shared._clients, shared._making = self._clients, self._making
        return shared

    async def aclose(self) -> None:
        """Close every connection."""
        exchanges = list(self._clients.values())
        self._clients.clear()
        for exchange in exchanges:
            await exchange.aclose()

    async def client_for(self, url: str) -> HttpClient:
        """Return the exchange for an address. A request to this machine never uses a proxy."""
        here = _host(url) in LOOPBACK
        found = self._clients.get(here)
        if found is not None:
            return found
        async with self._making:
            if here not in self._clients:
                make = partial(_new_client, direct=here, connect_s=self.limits.connect_s)
                self._clients[here] = await anyio.to_thread.run_sync(make)
            return self._clients[here]


class StreamBody:
    """Buffer of the bytes of a response body that were received and not taken yet.

    A separate task reads the socket, so that many small chunks are decoded at once and make one part, the more the
    slower the reader is.
    """

    def __init__(self, provider: str, limits: StreamTimeouts) -> None:
        self._provider = provider
        self._limits = limits
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._came = anyio.Event()
        self._room = anyio.Event()
        self._failure: ProviderError | None = None
        self._last_at: float | None = None
        self.ended = anyio.Event()
        self.whole = False
        """Set by the reader when it has all it wants: then the connection may serve the next request."""

    async def read(self) -> bytes:
        """Wait for bytes and give all there are, up to 64 KiB; empty at the end.

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
        given = [self._chunks.popleft()]
        size = len(given[0])
        while self._chunks and size + len(self._chunks[0]) <= TAKEN_BYTES:
            given.append(self._chunks.popleft())
            size += len(given[-1])
        self._waiting -= size
        if self._waiting <= WAITING_BYTES:
            self._room.set()
        return given[0] if len(given) == 1 else b"".join(given)

    async def pump(self, incoming: HttpResponse) -> None:
        """Read to the end."""
        try:
            async with aclosing(incoming.chunks()) as chunks:
                async for chunk in chunks:
                    self._last_at = anyio.current_time()
                    if not self._chunks:
                        self._came.set()
                    self._chunks.append(chunk)
                    self._waiting += len(chunk)
                    if self._waiting > WAITING_BYTES:
                        self._room = anyio.Event()
                        await self._room.wait()
                        self._last_at = anyio.current_time()
        except ProviderError as error:
            self._fail(error)
        self.ended.set()
        self._came.set()

    async def watchdog(self, *, started_at: float) -> None:
        """Fail an answer that falls silent."""
        while not self.ended.is_set():
            last_at, limit_s = started_at, self._limits.first_byte_s
            if self._last_at is not None:
                last_at, limit_s = self._last_at, self._limits.idle_s
            left_s = last_at + limit_s - anyio.current_time()
            if left_s <= 0 and self._waiting <= WAITING_BYTES:
                self._fail(_silent(self._provider, limit_s))
                self._came.set()
                return
            # The limit changes with the first byte: look again before the longer one is over.
            await anyio.sleep(min(max(left_s, LOOK_S), self._limits.idle_s))

    def _fail(self, failure: ProviderError) -> None:
        if self._failure is None:
            failure.before_first_byte = self._last_at is None
            self._failure = failure


@asynccontextmanager
async def open_stream(pool: HttpPool, post: HttpRequest) -> AsyncGenerator[StreamBody]:
    """Send a request and give the body of its answer; leaving closes the connection.

    A connection that fails before anything came is tried once more.

    Raises:
        ProviderError: The provider cannot be reached, keeps silent, or refuses.
    """
    post = await changed_by_hooks(post, pool.hooks)
    started_at = anyio.current_time()
    incoming = await _sent(pool, post)
    try:
        await tell_response(post, incoming.status, incoming.headers, pool.hooks)
        if incoming.status != HTTPStatus.OK:
            raise await _refused(pool, post, incoming)
        body = StreamBody(post.provider, pool.limits)
        async with _read(body, incoming, started_at=started_at):
            yield body
    finally:
        if not incoming.is_closed:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await incoming.aclose()


@asynccontextmanager
async def _read(
    body: StreamBody, incoming: HttpResponse, *, started_at: float
) -> AsyncGenerator[None]:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(body.pump, incoming)
        tasks.start_soon(partial(body.watchdog, started_at=started_at))
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


async def _sent(pool: HttpPool, post: HttpRequest) -> HttpResponse:
    exchange = await pool.client_for(post.url)
    try:
        with anyio.fail_after(pool.limits.first_byte_s):
            try:
                return await exchange.send(post)
            except ProviderError as error:
                if error.reason != "network":
                    raise
            # An idle connection that the provider has closed meanwhile is found out only by using it.
            return await exchange.send(post)
    except ProviderError as error:
        error.before_first_byte = True
        raise
    except TimeoutError:
        silent = _silent(post.provider, pool.limits.first_byte_s)
        silent.before_first_byte = True
        raise silent from None


async def _refused(pool: HttpPool, post: HttpRequest, incoming: HttpResponse) -> ProviderError:
    body = bytearray()
    # When the connection breaks here too: the status tells enough, and half a body is better than none.
    with suppress(ProviderError), anyio.move_on_after(ERROR_BODY_S):
        async with aclosing(incoming.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > ERROR_BODY_BYTES:
                    break
    return failure_from_response(
        status=incoming.status,
        headers=incoming.headers,
        body=bytes(body),
        provider=post.provider,
        now_ms=pool.clock.now_ms(),
        secrets=post.secrets,
        url=post.url,
        key_source=post.key_source,
    )


def _new_client(*, direct: bool, connect_s: float) -> HttpClient:
    """Import httpx and read the certificates: a tenth of a second that a start without a prompt does not pay."""
    with _no_command_line():
        from agent_core.providers.http.httpx_client import HttpxClient  # noqa: PLC0415 - see above

    return HttpxClient(direct=direct, connect_s=connect_s)


@contextmanager
def _no_command_line() -> Generator[None]:
    """Import httpx without its own command, which loads click, rich and pygments where they are installed."""
    if COMMAND_LINE in sys.modules:
        yield
        return
    # What stands there as None counts as not installed, and httpx does without it.
    sys.modules[COMMAND_LINE] = None  # pyright: ignore[reportArgumentType] - Python's own sign, which its types do not know
    try:
        yield
    finally:
        _ = sys.modules.pop(COMMAND_LINE, None)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _silent(provider: str, limit_s: float) -> ProviderError:
    message = (
        f"{provider} sent nothing for {limit_s:g} s; try again, or raise stream.firstByteTimeoutS or "
        "stream.idleTimeoutS"
    )
    return ProviderError(message, reason="timeout", provider=provider)
