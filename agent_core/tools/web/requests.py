"""Requests to web servers that nobody vouches for: public addresses only, bounded in size, time and redirects."""

import socket
import zlib
from collections.abc import Mapping, Sequence
from email.message import Message
from functools import cached_property, partial
from typing import Final
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpcore
import httpx
from msgspec.structs import replace
from typing_extensions import override

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.web.address import PublicHosts, Resolve, clean_url, host_of, port_of
from agent_core.tools.web.values import MOST_BYTES, WebRequest, WebResponse

TIMEOUT_S: Final = 30.0
MOST_REDIRECTS: Final = 5
CONNECT_S: Final = 10.0
"""For one address of a host."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
PACKED: Final = frozenset({"gzip", "x-gzip"})
PLAIN: Final = frozenset({"", "identity"})


async def look_up(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system's resolver."""
    found = await anyio.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(one[4][0]) for one in found))


class WebClient:
    """A client for one request and the redirects on its host. It keeps no cookies and no connections."""

    def __init__(self, hosts: PublicHosts, *, limit_s: float) -> None:
        """Create a client.

        Args:
            hosts: Resolver of hosts.
            limit_s: Seconds for a request with its redirects and the whole answer.
        """
        self._hosts = hosts
        self._limit_s = limit_s

    async def send(self, request: WebRequest) -> WebResponse:
        """Send a request and follow redirects that stay on the host.

        Raises:
            ToolError: There is no response that can be used; the text says why.
        """
        try:
            with anyio.fail_after(self._limit_s):
                return await self._follow(request)
        except TimeoutError:
            message = (
                f"{host_of(request.url)} did not send the whole answer within {self._limit_s:g} s."
            )
            raise ToolError(message) from None

    async def _follow(self, request: WebRequest) -> WebResponse:
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._once(request)
            if isinstance(answer, WebResponse):
                return answer
            if host_of(answer) != host_of(request.url):
                # Permission was given for one host; and where it leads to is checked before it is named.
                _ = await self._hosts.addresses(host_of(answer), port_of(answer))
                message = f"{request.url} redirects to another host, {host_of(answer)}."
                raise ToolError(message, advice=f" Fetch {answer} if that is what you want.")
            request = replace(request, url=answer, method="GET", body=b"")
        message = f"{host_of(request.url)} redirected {MOST_REDIRECTS} times without an answer; the last URL was {request.url}."
        raise ToolError(message)

    async def _once(self, request: WebRequest) -> WebResponse | str:
        """Send one request; a redirect gives its target."""
        proxy = await self._proxy(request.url)
        # Reading the certificates takes twenty milliseconds.
        transport = await run_in_thread(lambda: _Transport(self._hosts, proxy))
        headers = {
            "user-agent": "tiller",
            "accept": "text/markdown, text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.1",
            "accept-encoding": "gzip",
            **request.headers,
        }
        timeout = httpx.Timeout(None)
        try:
            async with (
                httpx.AsyncClient(
                    transport=transport, timeout=timeout, trust_env=False, follow_redirects=False
                ) as client,
                client.stream(
                    request.method, request.url, headers=headers, content=request.body
                ) as response,
            ):
                if response.status_code in REDIRECTS and (target := _header(response, "location")):
                    return redirect_target(request.url, target)
                return await _read(request.url, response)
        except (httpx.HTTPError, httpx.InvalidURL, httpcore.ProtocolError, zlib.error) as error:
            message = f"{host_of(request.url)} gave no usable answer: {_reason(error)}."
            raise ToolError(message) from None

    async def _proxy(self, url: str) -> str | None:
        """Return the proxy of the environment for a URL, after the check of the host as far as it can be resolved here."""
        parts, host = urlsplit(url), host_of(url)
        proxy = getproxies().get(parts.scheme)
        if proxy is None or await run_in_thread(partial(_avoids_proxy, host)):
            return None
        try:
            _ = await look_up(host, port_of(url))
        except OSError:
            # Only the proxy knows names of the internet here.
            return proxy
        _ = await self._hosts.addresses(host, port_of(url))
        return proxy


def client_of(options: Mapping[str, JsonValue], resolve: Resolve | None) -> WebClient:
    """Make a client that obeys the options of a tool."""
    named, limit = options.get("privateHosts"), options.get("timeoutS")
    private = tuple(map(str, named)) if isinstance(named, list | tuple) else ()
    return WebClient(
        PublicHosts(resolve or look_up, private=private),
        limit_s=float(limit) if isinstance(limit, int | float) else TIMEOUT_S,
    )


class _Transport(httpx.AsyncHTTPTransport):
    """The transport of httpx, whose connections go to checked addresses only."""

    def __init__(self, hosts: PublicHosts, proxy: str | None) -> None:
        trusted = httpx.create_ssl_context()
        super().__init__(verify=trusted, proxy=proxy)
        if proxy is None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=trusted, network_backend=_CheckedNetwork(hosts)
            )


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that were checked: a name that is looked up again could mean another one."""

    def __init__(self, hosts: PublicHosts) -> None:
        self._hosts = hosts

    @cached_property
    def _network(self) -> httpcore.AsyncNetworkBackend:
        return httpcore.AnyIOBackend()  # pyright: ignore[reportReturnType] - httpcore has another class of this name for when anyio is missing

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore.AsyncNetworkStream:
        refused: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in await self._hosts.addresses(host, port):
            try:
                return await self._network.connect_tcp(address, port, timeout=CONNECT_S)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
        raise refused or httpcore.ConnectError("it has no address")


def _header(response: httpx.Response, name: str) -> str:
    """Return a header; empty when it is missing."""
    value: str | None = response.headers.get(name)  # pyright: ignore[reportAny] - as httpx declares it
    return value or ""


def _avoids_proxy(host: str) -> bool:
    """Return whether the environment excepts a host from its proxy. May block: it may look the host up."""
    return bool(proxy_bypass(host))  # pyright: ignore[reportAny] - as typeshed declares it


def redirect_target(url: str, location: str) -> str:
    """Return the address that a `Location` header means.

    Raises:
        ToolError: It is not fetched.
    """
    try:
        target = clean_url(urljoin(url, location))
    except ValueError as error:
        message = f"{url} redirects to a URL that is not fetched: {error}."
        raise ToolError(message) from None
    if url.startswith("https:") and target.startswith("http:"):
        # The request may carry a key, which would be sent again without encryption.
        message = f"{url} redirects to a page without encryption, {target}, which is not followed."
        raise ToolError(message)
    return target


async def _read(url: str, response: httpx.Response) -> WebResponse:
    body, is_cut = await _body(url, response)
    kind = Message()
    named = _header(response, "content-type")
    kind["content-type"] = named
    return WebResponse(
        url=url,
        status=response.status_code,
        reason=response.reason_phrase,
        media_type=kind.get_content_type() if "/" in named else "",
        charset=kind.get_content_charset(),
        body=body,
        is_cut=is_cut,
    )


async def _body(url: str, response: httpx.Response) -> tuple[bytes, bool]:
    """Read and unpack a body up to the limit: of a small packed body a large one can come."""
    encoding = _header(response, "content-encoding").strip().lower()
    if encoding not in PACKED | PLAIN:
        message = f"{host_of(url)} packed its answer as {encoding!r}, which was not asked for; it is not read."
        raise ToolError(message)
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding in PACKED else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        room = MOST_BYTES + 1 - len(body)
        body += chunk[:room] if unpacker is None else unpacker.decompress(chunk, room)
        if len(body) > MOST_BYTES:
            return bytes(body[:MOST_BYTES]), True
    return bytes(body), False


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"{text[:1].lower()}{text[1:]}".rstrip(".")
