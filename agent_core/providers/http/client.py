"""Requests to providers: built as JSON, sent, tried again where that helps, their answers decoded."""

import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from agent_core.hooks import (
    GoOn,
    HeadersBuilt,
    HeadersChanged,
    Hooks,
    NoHooks,
    PayloadBuilt,
    PayloadReplaced,
    ResponseArrived,
)
from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.http.errors import failure_from_response
from agent_core.providers.http.request import HttpRequest

if TYPE_CHECKING:
    import httpx


TOO_LARGE = 413
"""A request bigger than a whole minute's allowance: waiting does not shrink it."""


def is_retryable(error: ProviderError) -> bool:
    """Return whether the same request may succeed by waiting alone.

    Overflow is not: it is answered by compaction. A cut or garbled stream is, for nothing of it was kept.
    """
    match error.reason:
        case "network" | "timeout" | "server" | "protocol":
            return True
        case "rate_limit":
            return error.status != TOO_LARGE and "request too large" not in str(error).lower()
        case "auth" | "quota" | "context_overflow" | "not_found" | "invalid_request" | "refused":
            return False


BODY_BYTES = 1 << 20
ASK_S = 15.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class JsonRequestFailed(Exception):
    """No answer that can be used; the text is a clause that names the host and holds no secret."""


class JsonRequest(SecretValue, frozen=True, kw_only=True):
    """A request; its `repr` shows no secret."""

    hidden: ClassVar = frozenset({"headers", "form", "body"})

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    form: Mapping[str, str] | None = None
    body: JsonObject | None = None


class JsonResponse(SecretValue, frozen=True, kw_only=True):
    """An answer; its `repr` shows no secret."""

    hidden: ClassVar = frozenset({"body"})

    status: int
    body: JsonObject


SendJson = Callable[[JsonRequest], Awaitable[JsonResponse]]


async def request_json(question: JsonRequest, *, limit_s: float = ASK_S) -> JsonResponse:
    """Send a request and read one JSON object of any status. Redirects are not followed: a request may hold secrets.

    Raises:
        JsonRequestFailed: The server cannot be reached, is silent, or answers something else.
    """
    host = urlsplit(question.url).netloc
    # The first client of a process imports httpx: that is not the server's time.
    client = await anyio.to_thread.run_sync(_client, question.url)
    try:
        with anyio.fail_after(limit_s):
            status, raw = await _asked(client, question)
    except TimeoutError:
        message = f"{host} did not answer within {limit_s:g} s"
        raise JsonRequestFailed(message) from None
    if status is None:
        message = f"{host} cannot be reached"
        raise JsonRequestFailed(message)
    try:
        value = json.decode(raw)
    except (ValueError, RecursionError):
        value = None
    if not json.is_object(value):
        message = f"{host} answered {status} with something that is not JSON"
        raise JsonRequestFailed(message)
    return JsonResponse(status=status, body=value)


async def _asked(client: "httpx.AsyncClient", question: JsonRequest) -> tuple[int | None, bytes]:
    import httpx  # noqa: PLC0415 - it was imported in the thread: a tenth of a second, for logins only

    headers = {"accept": "application/json", "user-agent": "tiller", **question.headers}
    form = None if question.form is None else dict(question.form)
    try:
        async with (
            client,
            client.stream(
                question.method, question.url, headers=headers, data=form, json=question.body
            ) as response,
        ):
            raw = bytearray()
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > BODY_BYTES:
                    break
            return response.status_code, bytes(raw)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None, b""


def _client(url: str) -> "httpx.AsyncClient":
    """Make a client; blocking, for it reads certificates from the disk, where there is anything to check with them."""
    import httpx  # noqa: PLC0415 - see above

    parts = urlsplit(url)
    here = parts.hostname in LOOPBACK
    return httpx.AsyncClient(
        follow_redirects=False,
        trust_env=not here,
        timeout=None,  # noqa: S113 - the caller limits the whole exchange
        verify=parts.scheme != "http",
    )


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
EVENT_LOOP_NAMER = "sniffio"

HIDDEN = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})  # fmt: skip
"""Headers that hold keys, whatever they hold."""


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
        await _tell_response(post, incoming.status, incoming.headers, pool.hooks)
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
    try:
        exchange = await pool.client_for(post.url)
    except OSError as error:  # `ssl.SSLError` too: a file without certificates
        message = (
            f"cannot reach {post.provider}: the trusted certificates cannot be read ({error.strerror}); "
            "check the paths in SSL_CERT_FILE and SSL_CERT_DIR (tiller doctor shows them)"
        )
        raise ProviderError(message, reason="invalid_request", provider=post.provider) from error
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
    with httpx_without_command():
        from agent_core.providers.http.httpx_client import HttpxClient  # noqa: PLC0415 - see above

    # httpcore imports it four times for each request, and Python looks through all of `sys.path` for what is missing.
    if find_spec(EVENT_LOOP_NAMER) is None:
        sys.modules.setdefault(EVENT_LOOP_NAMER, None)  # pyright: ignore[reportArgumentType] - Python's own sign for a missing module, which its types do not know
    return HttpxClient(direct=direct, connect_s=connect_s)


@contextmanager
def httpx_without_command() -> Generator[None]:
    """Prevent an import of httpx from loading its command, and click, rich and pygments with it where they are installed."""
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


async def changed_by_hooks(post: HttpRequest, hooks: Hooks) -> HttpRequest:
    """Return the request as hooks want it; one that is signed stays as it is."""
    if post.signed:
        return post
    if hooks.listens(PayloadBuilt):
        payload = json.as_object(json.decode(post.body))
        match await hooks.ask(PayloadBuilt(provider=post.provider, url=post.url, payload=payload)):
            case PayloadReplaced(payload=other):
                post = replace(post, body=json.encode(other))
            case GoOn():
                pass
    if hooks.listens(HeadersBuilt):
        shown = {
            name: text for name, text in post.headers.items() if not _is_secret(name, text, post)
        }
        match await hooks.ask(HeadersBuilt(provider=post.provider, url=post.url, headers=shown)):
            case HeadersChanged(headers=changes):
                post = replace(post, headers=_changed(post.headers, changes))
            case GoOn():
                pass
    return post


async def _tell_response(
    post: HttpRequest, status: int, headers: Mapping[str, str], hooks: Hooks
) -> None:
    """Notify hooks that a response has begun; `set-cookie` headers are not shown."""
    if hooks.listens(ResponseArrived):
        shown = {name: text for name, text in headers.items() if name.lower() != "set-cookie"}
        _ = await hooks.ask(ResponseArrived(provider=post.provider, status=status, headers=shown))


def _is_secret(name: str, text: str, post: HttpRequest) -> bool:
    return name.lower() in HIDDEN or any(secret in text for secret in post.secrets)


def _changed(headers: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Lay changes over headers; names count without their case."""
    named = {name.lower() for name in changes}
    kept = {name: text for name, text in headers.items() if name.lower() not in named}
    return kept | {name: text for name, text in changes.items() if text is not None}
